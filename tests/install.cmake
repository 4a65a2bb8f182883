# Installs the library into an empty folder and checks the files.
#   cmake -D build=<build folder> -D config=Release -D prefix=<folder> -P install.cmake
cmake_minimum_required(VERSION 3.22)

file(REMOVE_RECURSE ${prefix})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${prefix}
                COMMAND_ERROR_IS_FATAL ANY)

file(GLOB_RECURSE headers LIST_DIRECTORIES true RELATIVE ${prefix}/include ${prefix}/include/*)
foreach(header ${headers})
  if(header MATCHES "/(internal|kernels)(/|$)")
    message(FATAL_ERROR "${header} is private and should not be installed")
  endif()
endforeach()
