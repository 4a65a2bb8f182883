# Builds and runs the tapegrad code of docs/coming_from_pytorch.md: every row of its tables, and its programs. Writes
# the results to results.txt, which coming_from_pytorch.py compares with PyTorch's.
#   cmake -D installed=<prefix of the library> -D folder=<build folder> -D generator=Ninja -D compiler=g++ -D flags=
#         -P coming_from_pytorch.cmake
cmake_minimum_required(VERSION 3.22)

get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
set(page ${root}/docs/coming_from_pytorch.md)
set(header "| PyTorch | tapegrad | what differs, and why |")
file(READ ${page} rest)
file(REMOVE_RECURSE ${folder})

# ---- reading the page ----------------------------------------------------------------------------------------------

# A row becomes a function with its statements in order, and a call of show for each expression.
function(add_row line right remarks)
  set(body "")
  while(right MATCHES "^[^`]*`([^`]+)`(.*)$")
    set(right "${CMAKE_MATCH_2}")
    set(code "${CMAKE_MATCH_1}")
    string(APPEND body "\n#line ${line} \"${page}\"\n")
    if(code MATCHES ";( })?$")
      string(APPEND body "${code}")
    else()
      string(APPEND body "show([&] { return ${code}; });")
    endif()
  endwhile()
  if(body STREQUAL "")
    message(FATAL_ERROR "${page}:${line}: the row has no code for tapegrad")
  endif()
  set(call "Rows().row_${line}();")
  if(remarks MATCHES "Throws `(std::[a-z_]+)`")
    set(call "expect_throw<${CMAKE_MATCH_1}>([] { ${call} });")
  endif()
  set(rows "${rows}\nvoid row_${line}() {${body}\n}\n" PARENT_SCOPE)
  set(calls "${calls}  begin_row(${line});\n  ${call}\n" PARENT_SCOPE)
endfunction()

# The first C++ block is at namespace scope, with its includes. Programs become files of their own. Other blocks become
# members of the class of the rows' functions, newly created for each row.
function(add_block line text)
  set(block "#line ${line} \"${page}\"\n${text}")
  if(text MATCHES "\nint main")
    set(programs ${programs} program_${line} PARENT_SCOPE)
    file(WRITE ${folder}/program_${line}.cpp "${block}")
  elseif(definitions STREQUAL "")
    set(definitions "${block}" PARENT_SCOPE)
  else()
    set(members "${members}${block}" PARENT_SCOPE)
  endif()
endfunction()

# Line by line, since a CMake list of lines would also split at their semicolons.
set(line 0)
set(inside nothing)
foreach(text definitions members rows calls programs block)
  set(${text} "")
endforeach()
while(NOT rest STREQUAL "")
  math(EXPR line "${line} + 1")
  string(FIND "${rest}" "\n" end)
  string(SUBSTRING "${rest}" 0 ${end} text)
  math(EXPR end "${end} + 1")
  string(SUBSTRING "${rest}" ${end} -1 rest)
  if(text MATCHES "^```([a-z]*)$")
    if(inside STREQUAL "cpp")
      add_block(${begin} "${block}")
    elseif(inside STREQUAL "text")
      set(shown "${block}")
    endif()
    set(inside "${CMAKE_MATCH_1}")
    set(block "")
    math(EXPR begin "${line} + 1")
  elseif(inside MATCHES "^(cpp|text)$")
    string(APPEND block "${text}\n")
  elseif(text STREQUAL header)
    set(inside table)
  elseif(inside STREQUAL "table")
    if(text MATCHES "^\\| (.+) \\| (.+) \\| (.*)\\|$")
      add_row(${line} "${CMAKE_MATCH_2}" "${CMAKE_MATCH_3}")
    elseif(text STREQUAL "")
      set(inside "")
    elseif(NOT text MATCHES "^\\|-+\\|-+\\|-+\\|$")
      message(FATAL_ERROR "${page}:${line}: expected a row of three columns")
    endif()
  endif()
endwhile()

# ---- building and running it ---------------------------------------------------------------------------------------

file(WRITE ${folder}/rows.cpp "${definitions}
#include \"${CMAKE_CURRENT_LIST_DIR}/show.hpp\"

struct Rows {
${members}${rows}};

int main() {
${calls}}
")
set(targets "")
foreach(program rows ${programs})
  string(APPEND targets "add_executable(${program} ${program}.cpp)\n"
                        "target_link_libraries(${program} PRIVATE tapegrad::tapegrad)\n")
endforeach()
file(WRITE ${folder}/CMakeLists.txt "cmake_minimum_required(VERSION 3.22)
project(coming_from_pytorch LANGUAGES CXX)
find_package(tapegrad REQUIRED)
${targets}")
# Without a build type, as unoptimized code compiles faster.
execute_process(
  COMMAND ${CMAKE_COMMAND} -G ${generator} -S ${folder} -B ${folder}/build -D CMAKE_PREFIX_PATH=${installed}
          -D CMAKE_CXX_COMPILER=${compiler} "-DCMAKE_CXX_FLAGS=${flags}"
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${folder}/build RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "The tapegrad code of ${page} does not compile: see the compiler's messages above.")
endif()
set(where ${folder}/build)
execute_process(COMMAND ./rows WORKING_DIRECTORY ${where} OUTPUT_FILE ${folder}/printed.txt ERROR_VARIABLE results
                RESULT_VARIABLE failed)
file(WRITE ${folder}/results.txt "${results}")
if(failed)
  string(REGEX REPLACE "^.*\nrow " "" last "${results}")
  message(FATAL_ERROR "${page}: a row fails, in line ${last}")
endif()
foreach(program ${programs})
  execute_process(COMMAND ./${program} WORKING_DIRECTORY ${where} OUTPUT_VARIABLE printed RESULT_VARIABLE failed)
  if(failed OR NOT printed STREQUAL shown)
    message(FATAL_ERROR "${page}: ${program} prints '${printed}', but the page shows '${shown}'")
  endif()
endforeach()
