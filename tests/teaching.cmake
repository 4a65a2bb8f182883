# Checks docs/teaching.md: every exercise has an answer; the answers' programs, compiled as one, print the text
# after them; and the examples print the output shown on the page.
#   cmake -D installed=<prefix of the library> -D examples=<folder of programs> -D folder=<build folder>
#         -D config=Release -D generator=Ninja -D compiler=g++ -D flags= -P teaching.cmake
cmake_minimum_required(VERSION 3.22)

file(REMOVE_RECURSE ${folder})
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
set(page ${root}/docs/teaching.md)
set(name docs/teaching.md)
include(${CMAKE_CURRENT_LIST_DIR}/snippets.cmake)
read_blocks(${page} blocks)

# ---- exercises and their answers -----------------------------------------------------------------------------------

find_lines(${page} "^\\*\\*[0-9]+\\.[0-9]+ " exercises)
find_lines(${page} "^<details><summary>Answer</summary>$" answers)
find_lines(${page} "^</details>$" ends)
foreach(exercise answer end IN ZIP_LISTS exercises answers ends)
  if(NOT exercise OR NOT answer GREATER exercise OR NOT end GREATER answer)
    message(FATAL_ERROR "${name}, line ${exercise}: expected an exercise, '**1.1 ', then its answer in "
                        "<details><summary>Answer</summary> and </details>, got an answer in the lines "
                        "${answer} to ${end}")
  endif()
  if(previous_end AND exercise LESS previous_end)
    message(FATAL_ERROR "${name}, line ${exercise}: this exercise begins before the answer of the last has ended")
  endif()
  set(previous_end ${end})
endforeach()

# The end line of the answer containing a line; 0 outside of answers.
function(end_of_answer line result)
  set(${result} 0 PARENT_SCOPE)
  foreach(answer end IN ZIP_LISTS answers ends)
    if(line GREATER answer AND line LESS end)
      set(${result} ${end} PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# The first program is the frame of the others. An answer's output follows its program in the same answer; other texts
# are transcripts, which begin with a command.
set(frame)
set(snippets)
set(transcripts)
set(pending 0)  # the answer's program whose output is still missing
foreach(line IN LISTS blocks ITEMS 0)
  if(pending AND NOT language_${line} STREQUAL "text")
    message(FATAL_ERROR "${name}, line ${pending}: expected a block of text with the program's output after it")
  endif()
  end_of_answer(${line} end)
  if(language_${line} STREQUAL "cpp" AND NOT frame)
    set(frame "${text_${line}}")
  elseif(language_${line} STREQUAL "cpp")
    list(APPEND snippets ${line})
    if(end)
      set(pending ${line})
      set(pending_end ${end})
    endif()
  elseif(language_${line} STREQUAL "text" AND text_${line} MATCHES "^\\$ ")
    list(APPEND transcripts ${line})
  elseif(language_${line} STREQUAL "text")
    if(NOT pending OR NOT end EQUAL pending_end)
      message(FATAL_ERROR "${name}, line ${line}: expected a program before this text, or '$ ' and a command in it")
    endif()
    set(shown_${pending} "${text_${line}}")
    set(pending 0)
  endif()
endforeach()

# ---- the answers ---------------------------------------------------------------------------------------------------

if(NOT frame MATCHES "^(.*\n)int main\\(\\) {\n")
  message(FATAL_ERROR "${name}: expected the first program to be the frame of the answers, with int main() {")
endif()
write_snippets(${page} "${snippets}" "${CMAKE_MATCH_1}" "")
file(WRITE ${folder}/CMakeLists.txt "cmake_minimum_required(VERSION 3.22)
project(teaching LANGUAGES CXX)
find_package(tapegrad REQUIRED)
add_executable(snippets snippets.cpp)
target_link_libraries(snippets PRIVATE tapegrad::tapegrad)
")
build_snippets(${name} "")
foreach(line IN LISTS snippets)
  execute_process(COMMAND ./snippets ${line} WORKING_DIRECTORY ${folder}/build
                  OUTPUT_VARIABLE printed RESULT_VARIABLE status)
  if(DEFINED shown_${line})
    check_printed(${name} "The program in line ${line}" "${shown_${line}}" "${printed}")
  elseif(NOT status EQUAL 0)
    message(FATAL_ERROR "The program in line ${line} of ${name} fails (${status}): ${printed}")
  endif()
endforeach()

# ---- the examples' output ------------------------------------------------------------------------------------------

foreach(line IN LISTS transcripts)
  string(REGEX MATCH "^\\$ ([^\n]*)\n(.*)$" matched "${text_${line}}")
  set(shown "${CMAKE_MATCH_2}")
  string(REPLACE "build/release/examples" "${examples}" command "${CMAKE_MATCH_1}")
  execute_process(COMMAND sh -c "${command}" WORKING_DIRECTORY ${folder}
                  OUTPUT_VARIABLE printed ERROR_VARIABLE complaint RESULT_VARIABLE status)
  if(complaint MATCHES "word list not found")
    message("not tested: line ${line}, for want of word lists: ${complaint}")
    continue()
  elseif(NOT status EQUAL 0)
    message(FATAL_ERROR "The command in line ${line} of ${name} fails (${status}): ${complaint}")
  endif()
  check_printed(${name} "The command in line ${line}" "${shown}" "${printed}")
endforeach()

# ---- line counts ---------------------------------------------------------------------------------------------------

# Line counts in rows with a link are correct within a fifth, so files may change a little.
read_lines(${page} rows)
foreach(row IN LISTS rows)
  if(NOT row MATCHES "^\\| <open>[^|]*<close>\\(\\.\\./([^)]*)\\) +\\| +([0-9]+) +\\|")
    continue()
  endif()
  set(file ${CMAKE_MATCH_1})
  set(told ${CMAKE_MATCH_2})
  read_lines(${root}/${file} counted)
  list(LENGTH counted count)
  math(EXPR difference "(${count} - ${told}) * 5")
  if(difference GREATER told OR difference LESS -${told})
    message(FATAL_ERROR "${name} states ${told} lines for ${file}, which has ${count}")
  endif()
endforeach()
