# Functions for tests of Markdown pages: they read a page's blocks, compile its C++ blocks, and compare output with the
# page. Scripts include this file; functions that build use the script's -D compiler=... and other variables.

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# ---- reading a page ------------------------------------------------------------------------------------------------

# Replaces characters with a special meaning in CMake lists, while a text is in a list.
function(quote text result)
  string(REPLACE "\\" "<backslash>" text "${text}")
  string(REPLACE ";" "<semicolon>" text "${text}")
  string(REPLACE "[" "<open>" text "${text}")
  string(REPLACE "]" "<close>" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

function(unquote text result)
  string(REPLACE "<semicolon>" ";" text "${text}")
  string(REPLACE "<open>" "[" text "${text}")
  string(REPLACE "<close>" "]" text "${text}")
  string(REPLACE "<backslash>" "\\" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# The lines of a page as a list, quoted.
function(read_lines page result)
  file(READ ${page} text)
  quote("${text}" text)
  string(REPLACE "\n" ";" lines "${text}")
  set(${result} "${lines}" PARENT_SCOPE)
endfunction()

# The numbers of matching lines.
function(find_lines page regex result)
  read_lines(${page} lines)
  set(number 0)
  set(found)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    if(line MATCHES "${regex}")
      list(APPEND found ${number})
    endif()
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# The fenced blocks of a page, named by the number of their first line: language_<line>, text_<line>.
function(read_blocks page result)
  read_lines(${page} lines)
  set(number 0)
  set(found)
  set(begin 0)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    if(line MATCHES "^```([a-z]*)$" AND begin EQUAL 0)
      math(EXPR begin "${number} + 1")
      set(language "${CMAKE_MATCH_1}")
      set(text "")
    elseif(line STREQUAL "```")
      list(APPEND found ${begin})
      unquote("${text}" text)
      set(language_${begin} "${language}" PARENT_SCOPE)
      set(text_${begin} "${text}" PARENT_SCOPE)
      set(begin 0)
    elseif(begin GREATER 0)
      string(APPEND text "${line}\n")
    endif()
  endforeach()
  if(begin GREATER 0)
    message(FATAL_ERROR "The block in line ${begin} of ${page} does not end")
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# ---- compiling its snippets ----------------------------------------------------------------------------------------

# Writes ${folder}/snippets.cpp: after the definitions and all includes, one function for each snippet, text_<line>,
# starting with `beginning`. The program's argument is the line of the snippet to run.
function(write_snippets page snippets definitions beginning)
  set(functions)
  set(calls)
  foreach(line IN LISTS snippets)
    string(REGEX MATCHALL "#include [^\n]*\n" includes "${text_${line}}")
    string(REGEX REPLACE "#include [^\n]*\n" "\n" text "${text_${line}}")
    string(PREPEND definitions ${includes})
    string(APPEND functions "\nvoid snippet_${line}() {\n${beginning}\n#line ${line} \"${page}\"\n${text}}\n")
    string(APPEND calls "  if (number == \"${line}\") snippet_${line}();\n")
  endforeach()
  file(WRITE ${folder}/snippets.cpp "#include <exception>\n#include <string>\n${definitions}${functions}
int main(int, char** arguments) try {
  const std::string number = arguments[1];
${calls}} catch (const std::exception& error) {
  std::cout << error.what() << '\\n';
  return 1;
}
")
endfunction()

# Builds the project in ${folder}, in ${folder}/build, against an installed copy, with further arguments as CMake
# options; `hint` describes the content. There is no build type, since unoptimized code compiles faster.
function(build_snippets page hint)
  run(${CMAKE_COMMAND} -G ${generator} -S ${folder} -B ${folder}/build -D CMAKE_PREFIX_PATH=${installed}
      -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_CXX_FLAGS=${flags} ${ARGN})
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${folder}/build --config ${config} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "A snippet or program of ${page} does not compile: see the compiler's lines above. ${hint}")
  endif()
endfunction()

# ---- output --------------------------------------------------------------------------------------------------------

# Normalizes output: drops spacing, times and the sign of a NaN, and processor-dependent rounding: digits after the
# fourth decimal, and the differences between agreeing results.
function(reduce text result)
  string(REGEX REPLACE "[0-9.]+ [um]s" "<time>" text "${text}")
  string(REGEX REPLACE "(\\.[0-9][0-9][0-9][0-9])[0-9]+" "\\1" text "${text}")
  string(REGEX REPLACE "(0|[0-9.e-]+ at \\([0-9, ]*\\)) +(exact|close)" "<agrees>" text "${text}")
  string(REPLACE "-nan" "nan" text "${text}")
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  string(STRIP "${text}" text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Fails unless the output matches the page, where "..." matches anything; `what` names the program.
function(check_printed page what shown_text printed)
  reduce("${printed}" rest)
  reduce("${shown_text}" pattern)
  set(rest "<begin>${rest}<end>")
  set(pattern "<begin>${pattern}<end>...")
  while(NOT pattern STREQUAL "")
    string(FIND "${pattern}" "..." end)
    string(SUBSTRING "${pattern}" 0 ${end} piece)
    math(EXPR end "${end} + 3")
    string(SUBSTRING "${pattern}" ${end} -1 pattern)
    string(FIND "${rest}" "${piece}" place)
    if(place EQUAL -1)
      message("${printed}\nThat was printed, but shown is\n\n${shown_text}")
      string(REGEX REPLACE "<begin>|<end>" "" piece "${piece}")
      message(FATAL_ERROR "${what} of ${page} prints other than what is shown: looked for\n${piece}")
    endif()
    string(LENGTH "${piece}" length)
    math(EXPR place "${place} + ${length}")
    string(SUBSTRING "${rest}" ${place} -1 rest)
  endwhile()
endfunction()
