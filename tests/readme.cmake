# Does what the README tells users to do: installs the library, then builds and runs the program and the CMakeLists.txt
# that stand there.
#   cmake -D build=<build folder> -D config=Release -D generator=Ninja -D compiler=g++ -D flags= -P readme.cmake

set(folder ${build}/tests/readme)
file(REMOVE_RECURSE ${folder})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Writes the README's first fenced block of a language to a file.
function(extract language file)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/../README.md readme)
  if(NOT readme MATCHES "\n```${language}\n([^`]+)```\n")
    message(FATAL_ERROR "README.md has no block of ${language}")
  endif()
  file(WRITE ${folder}/${file} "${CMAKE_MATCH_1}")
endfunction()

extract(cpp model.cpp)
extract(cmake CMakeLists.txt)
run(${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${folder}/installed)
run(${CMAKE_COMMAND} -G ${generator} -S ${folder} -B ${folder}/build -D CMAKE_PREFIX_PATH=${folder}/installed
    -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_CXX_FLAGS=${flags})
run(${CMAKE_COMMAND} --build ${folder}/build --config ${config})
run(${folder}/build/model)
