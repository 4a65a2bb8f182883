/// Forward declarations for CLI11. Including its header costs seconds of compile time per file.
#pragma once

namespace CLI {

class App;
class Validator;

}  // namespace CLI
