/// What is wrong with the files that the user names is said before the work.
#pragma once

#include "options.hpp"

/// Throws std::runtime_error, naming the file or folder, when one cannot be read or written, when one that is read
/// would be overwritten, when two outputs are one, and when a folder has files that would be taken for what is saved
/// there.
void check_files(const Options& options);
