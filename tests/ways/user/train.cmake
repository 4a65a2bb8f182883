# Runs the program and compares its output, the sizes of types, with that of the same program built with the library.
#   cmake -D program=<file> -D sizes_of=<file> -P train.cmake
cmake_minimum_required(VERSION 3.22)

execute_process(COMMAND ${program} OUTPUT_VARIABLE sizes COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${sizes_of} OUTPUT_VARIABLE expected COMMAND_ERROR_IS_FATAL ANY)
if(NOT sizes STREQUAL expected)
  message(FATAL_ERROR "Types differ in size from the library's.\nThe program:\n${sizes}\nThe library:\n${expected}")
endif()
