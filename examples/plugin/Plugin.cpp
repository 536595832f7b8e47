// The entry point, as MLIR's plug-ins have it.

#include "Example.h"

#include "mlir/Tools/Plugins/PassPlugin.h"

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "example", "1.0", [] {
            example::registerSchedule();
            example::registerMethod();
            example::registerPass();
            example::registerOperator();
            example::registerTarget();
          }};
}
