/// The names of CLI11 that headers need: its own header takes seconds of every file that includes it.
#pragma once

namespace CLI {

class App;
class Validator;

}  // namespace CLI
