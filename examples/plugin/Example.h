// What the files of this plug-in register. Take one file, or all of them.

#ifndef EXAMPLE_H
#define EXAMPLE_H

namespace example {

void registerSchedule();
void registerMethod();
void registerPass();
void registerOperator();
void registerTarget();

} // namespace example

#endif // EXAMPLE_H
