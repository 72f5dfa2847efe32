#include "trireme/command_line.hpp"

int main(int argc, char** argv) { return trireme::command_line(argc, argv); }
