# Builds the program of optim/mpi/mpi.md with the page's CMakeLists.txt, and runs it alone and with mpirun.
#   cmake -D installed=<where the library is> -D folder=<to build in> -D config=Release -D generator=Ninja
#         -D compiler=g++ -D flags= -D mpirun=<command;options> -P page.cmake
cmake_minimum_required(VERSION 3.22)

file(REMOVE_RECURSE ${folder})
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
set(page ${root}/optim/mpi/mpi.md)
include(${root}/tests/snippets.cmake)
read_blocks(${page} blocks)
foreach(line IN LISTS blocks)
  set(${language_${line}} "${text_${line}}")
endforeach()

file(WRITE ${folder}/parallel.cpp "${cpp}")
file(WRITE ${folder}/CMakeLists.txt "${cmake}")
build_snippets(mpi.md "parallel.cpp is the page's program.")
foreach(ranks 1 2 3)
  set(launcher ${mpirun} -n ${ranks})
  if(ranks EQUAL 1)
    set(launcher)
  endif()
  execute_process(
    COMMAND ${launcher} ${folder}/build/parallel
    OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "by 2" "by ${ranks}" shown "${text}")
  check_printed(mpi.md "The program" "${shown}" "${printed}")
endforeach()
