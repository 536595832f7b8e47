// --method=uniform-delay:updates=D: forward and backward of every stage read
// the weights of D updates ago, in a stash of versions. So all stages see the
// same weights, and the gradient is that of a point, D updates late. With D = 1
// it reads what PipeDream-2BW reads.

#include "Example.h"

#include "penstock/Methods/Method.h"
#include "penstock/Methods/VersionTable.h"

using namespace penstock;

namespace {

constexpr SpecKey kKeys[] = {{.name = "updates",
                              .type = SpecKey::Whole,
                              .fallback = 1,
                              .least = 1,
                              .below = 1000,
                              .example = "1"}};

class UniformDelay : public Method {
public:
  constexpr UniformDelay() : Method("uniform-delay", kKeys) {}

  VersionStorage getStorage() const override { return VersionStorage::Stash; }

  /// Lags are in microbatches.
  Lags getLags(const MethodSpec &spec, const StageFacts &stage) const override {
    int64_t lag = spec.getWhole("updates") * stage.microbatches;
    return {lag, lag};
  }

  /// The version must be there when the first stage's forward reads it.
  std::string checkDepth(llvm::ArrayRef<int64_t> replicas,
                         int64_t microbatches) const override {
    int64_t depth = replicas.size();
    if (microbatches >= depth)
      return "";
    return "uniform-delay needs at least as many microbatches per update as "
           "the pipeline is deep: use --microbatches=" +
           std::to_string(depth) + " or more";
  }
};

/// The same for the replay of --verify, which asks nothing of the class above:
/// a mistake in either is a difference.
WeightAges getAges(const MethodSpec &method, int64_t /*inFlight*/,
                   const PipelinePlace &place) {
  int64_t age = method.getWhole("updates") * place.M;
  return {age, age};
}

} // namespace

void example::registerMethod() {
  static constexpr UniformDelay kMethod;
  addMethod(kMethod);
  addWeightAges("uniform-delay", getAges);
}
