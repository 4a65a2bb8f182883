# tapegrad_embed(<target> <file> [<name>])
#
# Puts the bytes of a file, such as a model, into a target, so that the program needs no file beside it:
#
#     tapegrad_embed(classifier model.safetensors)
#
#     #include <embedded/model_safetensors.hpp>
#     tg::load(model, embedded::model_safetensors());
#
# The function returns a std::span<const std::byte>, of bytes that nobody can write to, at an address that 64 divides.
# It and its header are called <name>, or else the file's name with _ for each character that a name in C++ cannot have;
# sources of other targets do not see them. <file> counts from the current source directory; when it changes, the target
# is built anew. The assembler reads it: g++ and clang++ on Linux do that at the speed of the disk, and the memory is
# taken only as the bytes are read.
function(tapegrad_embed target file)
  get_filename_component(path "${file}" ABSOLUTE)
  get_property(generated SOURCE "${path}" PROPERTY GENERATED)
  if(NOT generated AND (NOT EXISTS "${path}" OR IS_DIRECTORY "${path}"))
    message(FATAL_ERROR "tapegrad_embed: expected a file, given ${path}")
  endif()
  get_filename_component(name "${file}" NAME)
  if(ARGC GREATER 2)
    set(name "${ARGV2}")
  endif()
  string(MAKE_C_IDENTIFIER "${name}" name)
  get_target_property(names ${target} TAPEGRAD_EMBEDDED)
  if(name IN_LIST names)
    message(FATAL_ERROR "tapegrad_embed: ${target} has two files called ${name}; give one of them another <name>")
  endif()
  set_property(TARGET ${target} APPEND PROPERTY TAPEGRAD_EMBEDDED ${name})

  # Two parts of a program may each have a file of one name: their targets tell them apart.
  string(MAKE_C_IDENTIFIER "of_${target}" owner)
  set(symbol "tapegrad_embedded_${owner}_${name}")
  string(REPLACE "\"" "\\\"" quoted "${path}")

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/tapegrad_embed/${target}")
  file(CONFIGURE OUTPUT "${folder}/embedded/${name}.hpp" @ONLY CONTENT [=[
#pragma once

#include <cstddef>
#include <span>

namespace embedded {
inline namespace @owner@ {

std::span<const std::byte> @name@();

}  // namespace @owner@
}  // namespace embedded
]=])
  file(CONFIGURE OUTPUT "${folder}/${name}.cpp" @ONLY CONTENT [=[
#include "embedded/@name@.hpp"

#include <cstdint>

asm(R"asm(
  .pushsection .rodata
  .balign 64
  .globl @symbol@, @symbol@_size
  .hidden @symbol@, @symbol@_size
@symbol@:
  .incbin "@quoted@"
@symbol@_end:
  .balign 8
@symbol@_size:
  .8byte @symbol@_end - @symbol@
  .popsection
)asm");

extern "C" {
[[gnu::visibility("hidden")]] extern const std::byte @symbol@[];
[[gnu::visibility("hidden")]] extern const std::uint64_t @symbol@_size;
}

std::span<const std::byte> embedded::@owner@::@name@() { return {@symbol@, @symbol@_size}; }
]=])
  target_sources(${target} PRIVATE "${folder}/${name}.cpp")
  target_include_directories(${target} PRIVATE "${folder}")
  set_property(SOURCE "${folder}/${name}.cpp" TARGET_DIRECTORY ${target} APPEND PROPERTY OBJECT_DEPENDS "${path}")
endfunction()
