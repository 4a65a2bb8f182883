# Does what the README tells users to do: builds and runs the program and the CMakeLists.txt that stand there, and the
# snippets from "Data in, results out" on, which must print what the README shows.
#   cmake -D installed=<where the library is> -D folder=<to build in> -D config=Release -D generator=Ninja
#         -D compiler=g++ -D flags= -D doctest_DIR=<of doctest's package> -P readme.cmake
cmake_minimum_required(VERSION 3.22)

file(REMOVE_RECURSE ${folder})
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
file(READ ${root}/README.md readme)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Gives the README's first fenced block of a language.
function(extract language result)
  if(NOT readme MATCHES "\n```${language}\n([^`]+)```\n")
    message(FATAL_ERROR "README.md has no block of ${language}")
  endif()
  set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# In CMake's lists semicolons and brackets mean something: while a text is in a list they are written otherwise.
function(quote text result)
  string(REPLACE ";" "<semicolon>" text "${text}")
  string(REPLACE "[" "<open>" text "${text}")
  string(REPLACE "]" "<close>" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

function(unquote text result)
  string(REPLACE "<semicolon>" ";" text "${text}")
  string(REPLACE "<open>" "[" text "${text}")
  string(REPLACE "<close>" "]" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# The line of the README that the text begins at.
function(find_line text result)
  string(FIND "${readme}" "${text}" place)
  string(SUBSTRING "${readme}" 0 ${place} before)
  string(REGEX REPLACE "[^\n]" "" before "${before}")
  string(LENGTH "${before}" line)
  math(EXPR line "${line} + 1")
  set(${result} ${line} PARENT_SCOPE)
endfunction()

# ---- the programs --------------------------------------------------------------------------------------------------

extract(cpp program)
extract(cmake lists)

# The snippets: of each the line of the README that it begins at, with text_<line> and, where the README shows what it
# prints, shown_<line>. What has test cases is a program of its own; the others stand in the first program in place of
# its loop, which is here a function for each.
if(NOT readme MATCHES "\n## Data in, results out\n(.*)\n## Where things are\n")
  message(FATAL_ERROR "README.md has no section 'Data in, results out' before 'Where things are'")
endif()
quote("${CMAKE_MATCH_1}" section)
string(REGEX MATCHALL "\n```[a-z]*\n[^`]*```" blocks "${section}")
if(NOT program MATCHES "^(.*\n)int main\\(\\) {\n(.*)\n  for \\(int step.*$")
  message(FATAL_ERROR "The first program of README.md has no loop")
endif()
set(definitions "${CMAKE_MATCH_1}")
set(beginning "${CMAKE_MATCH_2}")

set(snippets)
set(functions)
set(calls)
foreach(block ${blocks})
  unquote("${block}" block)
  string(REGEX MATCH "^\n```([a-z]*)\n(.*)```$" block "${block}")
  set(language ${CMAKE_MATCH_1})
  set(text "${CMAKE_MATCH_2}")
  if(language STREQUAL "text")
    set(shown_${line} "${text}")
  elseif(language STREQUAL "cpp")
    find_line("${text}" line)
    list(APPEND snippets ${line})
    set(text_${line} "${text}")
    if(text MATCHES "TEST_CASE")
      set(tests ${line})
      continue()
    endif()
    string(REGEX MATCHALL "#include [^\n]*\n" includes "${text}")
    string(REGEX REPLACE "#include [^\n]*\n" "\n" text "${text}")
    string(PREPEND definitions ${includes})
    string(APPEND functions "\nvoid snippet_${line}() {\n${beginning}\n#line ${line} \"${root}/README.md\"\n${text}}\n")
    string(APPEND calls "  if (number == \"${line}\") snippet_${line}();\n")
  endif()
endforeach()

file(WRITE ${folder}/model.cpp "${program}")
file(WRITE ${folder}/model_test.cpp "${text_${tests}}")
file(WRITE ${folder}/snippets.cpp "#include <exception>\n#include <string>\n${definitions}${functions}
int main(int, char** arguments) try {
  const std::string number = arguments[1];
${calls}} catch (const std::exception& error) {
  std::cout << error.what() << '\\n';
  return 1;
}
")
file(WRITE ${folder}/CMakeLists.txt "${lists}
find_package(doctest REQUIRED)
add_executable(model_test model_test.cpp)
target_link_libraries(model_test PRIVATE tapegrad::tapegrad doctest::doctest)
add_executable(snippets snippets.cpp)
target_link_libraries(snippets PRIVATE tapegrad::tapegrad)
")
run(${CMAKE_COMMAND} -G ${generator} -S ${folder} -B ${folder}/build -D CMAKE_PREFIX_PATH=${installed}
    -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_CXX_FLAGS=${flags}
    -D doctest_DIR=${doctest_DIR})
execute_process(COMMAND ${CMAKE_COMMAND} --build ${folder}/build --config ${config} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "A snippet or program of README.md does not compile: see the compiler's lines above. "
                      "model.cpp is the first program, model_test.cpp the snippet in line ${tests}.")
endif()
run(${folder}/build/model)

# ---- what the snippets print ---------------------------------------------------------------------------------------

# What is the same in every run: spacing and times are dropped, and so is what rounding makes differ between processors:
# the digits after the fourth decimal, and how far apart two results are that agree.
function(reduce text result)
  string(REGEX REPLACE "[0-9.]+ [um]s" "<time>" text "${text}")
  string(REGEX REPLACE "(\\.[0-9][0-9][0-9][0-9])[0-9]+" "\\1" text "${text}")
  string(REGEX REPLACE "(0|[0-9.e-]+ at \\([0-9, ]*\\)) +(exact|close)" "<agrees>" text "${text}")
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  string(STRIP "${text}" text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Fails unless the snippet has printed what the README shows, where "..." stands for anything.
function(check_printed line printed)
  reduce("${printed}" reduced)
  reduce("${shown_${line}}" pattern)
  string(REGEX REPLACE "([][+.*()^$?|\\\\])" "\\\\\\1" pattern "${pattern}")
  string(REPLACE "\\.\\.\\." ".*" pattern "${pattern}")
  if(NOT reduced MATCHES "^${pattern}$")
    message("${printed}\nThat was printed, but shown is\n\n${shown_${line}}")
    message(FATAL_ERROR "The snippet in line ${line} of README.md prints other than what follows it there.")
  endif()
endfunction()

# Fails unless the README's picture of the graph has the boxes and the arrows that to_dot has written.
function(check_picture graph picture)
  file(READ ${graph} dot)
  file(READ ${picture} svg)
  string(REPLACE "&#45;&gt;" " -> " svg "${svg}")
  string(REGEX MATCHALL "label=\"[^\"]*|[a-z0-9]+ -> [a-z0-9]+" parts "${dot}")
  foreach(part ${parts})
    string(REPLACE "label=\"" "" part "${part}")
    string(REPLACE "\\n" ";" texts "${part}")
    foreach(text ${texts})
      string(FIND "${svg}" ">${text}<" place)
      if(place EQUAL -1)
        message(FATAL_ERROR "${picture} lacks '${text}'. Draw it again: dot -Tsvg ${graph} -o ${picture}")
      endif()
    endforeach()
  endforeach()
endfunction()

find_program(gnuplot gnuplot)
set(where ${folder}/build)
foreach(line ${snippets})
  set(command ./snippets ${line})
  if(line EQUAL tests)
    set(command ./model_test --no-path-filenames=true)
  endif()
  execute_process(COMMAND ${command} WORKING_DIRECTORY ${where} OUTPUT_VARIABLE printed RESULT_VARIABLE status)
  if(printed MATCHES "apt-get install gnuplot-nox" AND NOT gnuplot)
    continue()  # the last thing that the snippet does needs it
  endif()
  if(DEFINED shown_${line})
    check_printed(${line} "${printed}")
  elseif(NOT status EQUAL 0 OR NOT printed STREQUAL "")
    message("${printed}")
    message(FATAL_ERROR "The snippet in line ${line} of README.md fails or prints what is not shown (${status}).")
  endif()
  string(REGEX MATCHALL "[a-z]+\\.(csv|npy|png)" files "${text_${line}}")
  foreach(file ${files})
    if(NOT EXISTS ${where}/${file})
      message(FATAL_ERROR "The snippet in line ${line} of README.md has not written ${file}")
    endif()
  endforeach()
endforeach()
check_picture(${where}/graph.dot ${root}/examples/graph.svg)
