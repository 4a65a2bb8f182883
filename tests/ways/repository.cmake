# Makes a bare repository whose branch main is the last commit of a clone.
#   cmake -D git=git -D from=<clone> -D to=<folder> -P repository.cmake
cmake_minimum_required(VERSION 3.22)

file(REMOVE_RECURSE ${to})
execute_process(COMMAND ${git} clone --quiet --bare --depth 1 file://${from} ${to} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${git} -C ${to} update-ref refs/heads/main HEAD COMMAND_ERROR_IS_FATAL ANY)
