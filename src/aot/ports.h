// What goes into a program and comes out, as members of a structure of C.
#pragma once

#include <string>
#include <vector>

#include "aot/memory.h"
#include "tensor/program.h"

namespace tiny::aot {

struct CPort {
  std::string member;
  std::string type;      // of an element: "float"
  std::string comment;   // "[batch][3], \"x\""
  std::string elements;  // how many, by the variables
  bool is_given = true;  // a member; else it lies in the state
  bool may_be_null = false;
  int64_t number = -1;       // of the program; -1: nothing reads or writes it
  int64_t state_offset = 0;  // unless it is given
};

struct CPorts {
  std::vector<std::string> variables;  // members
  std::vector<CPort> inputs;
  std::vector<CPort> outputs;
};
CPorts make_ports(const TensorProgram& program, const CapturedMemory& captured);

}  // namespace tiny::aot
