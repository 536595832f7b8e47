#!/usr/bin/env python3
"""Exports a PyTorch module to an ONNX file that trains, and checks the file.

    export.py FILE.py:NAME --input NAME:TYPE[DIM,...] -o MODEL.onnx

calls NAME of FILE.py, which returns the module, and exports it in training mode
with the switches that keep what training needs. A dimension is a number or a name;
named ones may have any size, so the first is usually `batch`. Then it checks that

  - every parameter that trains is in the file, under its name, with its values;
  - the file computes what the module computes, both in evaluation mode;

and prints the flags that penstockc needs for what the file cannot say: which
buffers and which parameters without requires_grad it must not train.

    export.py FILE.py:NAME --load TRAINED.onnx -o TRAINED.pt

is the way back: the weights of a file that a Penstock program saved, as the
state_dict of the module. In a program of your own, that is one call:

    module.load_state_dict(export.read_weights(module, "trained.onnx"))

Needs torch, onnx and onnxscript; the second check also onnxruntime. Written for
torch 2.6 and newer. Copy and change it as you like.
"""

import argparse
import importlib.util
import pathlib
import re
import sys
import warnings

import onnx
import torch
from onnx import numpy_helper

TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16,
         "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}
OPSET = 18


def parse_input(text):
    """`x:f32[batch,64]` as its name, type and dimensions."""
    match = re.fullmatch(r"([^:]+):(\w+)\[([^\]]*)\]", text)
    if not match or match[2] not in TYPES:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not NAME:TYPE[DIM,...]; types are {', '.join(TYPES)}")
    dims = [d.strip() for d in match[3].split(",") if d.strip()]
    return match[1], TYPES[match[2]], [int(d) if d.isdigit() else d for d in dims]


def make_module(text):
    """Calls the function or class that `FILE.py:NAME` names."""
    path, _, name = text.rpartition(":")
    if not path:
        sys.exit(f"export.py: '{text}' is not FILE.py:NAME")
    if not pathlib.Path(path).is_file():
        sys.exit(f"export.py: there is no file '{path}'")
    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    file = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(file)
    if not hasattr(file, name):
        sys.exit(f"export.py: '{path}' has no '{name}'")
    return getattr(file, name)()


def make_example(inputs, sizes):
    """Random arrays of the inputs' shapes; `sizes` has those of named dimensions."""
    generator = torch.Generator().manual_seed(1)
    arrays = []
    for _, dtype, dims in inputs:
        shape = [sizes.get(d, d) for d in dims]
        if dtype.is_floating_point:
            arrays.append(torch.rand(shape, generator=generator).to(dtype))
        else:  # 0 and 1 are in range for any embedding
            arrays.append(torch.randint(0, 2, shape, generator=generator).to(dtype))
    return tuple(arrays)


def export(module, inputs, outputs, path, dynamo=True, external_data=False):
    """Writes `module` to `path` for training."""
    module.train()  # batch norms and dropouts stay what they are
    named = {d for _, _, dims in inputs for d in dims if isinstance(d, str)}
    # Sizes that no other dimension has, and neither is 0 or 1: the exporters
    # take those for fixed.
    sizes = {name: 3 + i for i, name in enumerate(sorted(named))}
    example = make_example(inputs, sizes)
    common = {
        "input_names": [name for name, _, _ in inputs],
        "output_names": outputs,
        "opset_version": OPSET,
        "external_data": external_data,
    }
    if dynamo:
        dims = {name: torch.export.Dim(name) for name in named}
        torch.onnx.export(
            module, example, path, dynamo=True, verbose=False,
            optimize=False,  # or norms, constants and equal tensors are merged
            dynamic_shapes=tuple(
                {i: dims[d] for i, d in enumerate(shape) if d in dims}
                for _, _, shape in inputs),
            **common)
    else:
        axes = {name: {i: d for i, d in enumerate(shape) if isinstance(d, str)}
                for name, _, shape in inputs}
        for output in outputs or []:
            axes[output] = {0: inputs[0][2][0]}
        torch.onnx.export(
            module, example, path, dynamo=False,
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=False,  # or weights are transposed and renamed
            keep_initializers_as_inputs=False,
            dynamic_axes=axes, **common)
    # The exporter notes source lines, with the paths of this machine.
    model = onnx.load(path, load_external_data=False)
    for node in model.graph.node:
        kept = [p for p in node.metadata_props if "stack_trace" not in p.key]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, path)


def read_weights(module, path):
    """The weights in an ONNX file as a state_dict of `module`, whose names it has."""
    arrays = {t.name: t for t in onnx.load(path).graph.initializer}
    state = module.state_dict()
    aliases = find_aliases(state)
    for name, old in state.items():
        found = next((n for n in aliases[name] if n in arrays), None)
        if found:
            array = torch.from_numpy(numpy_helper.to_array(arrays[found]).copy())
            if array.shape != old.shape:
                sys.exit(f"export.py: '{found}' is {list(array.shape)} in {path} "
                         f"and {list(old.shape)} in the module")
            state[name] = array.to(old.dtype)
        elif old.is_floating_point():
            # Not of the graph, such as a buffer that the module never reads.
            print(f"export.py: {path} has no '{name}'; its value stays", file=sys.stderr)
    return state


def find_aliases(state):
    """Per name, the names of the same tensor, itself first: tied weights."""
    by_tensor = {}
    for name, tensor in state.items():
        by_tensor.setdefault((tensor.data_ptr(), tuple(tensor.shape)), []).append(name)
    return {name: [name] + names for names in by_tensor.values() for name in names}


def check_parameters(module, path):
    """The mistakes of a file: parameters that are not in it as they are."""
    arrays = {t.name: t for t in onnx.load(path).graph.initializer}
    aliases = find_aliases(module.state_dict(keep_vars=True))
    wrong = []
    for name, parameter in module.named_parameters():
        found = next((n for n in aliases[name] if n in arrays), None)
        if not found:
            wrong.append(f"'{name}' is not in the file: the exporter folded it, or "
                         "the outputs do not depend on it")
        elif not torch.equal(torch.from_numpy(numpy_helper.to_array(arrays[found]).copy()),
                             parameter.detach()):
            wrong.append(f"'{found}' has other values or another shape in the file")
    return wrong


def make_inference_form(model):
    """The model with its batch norms and dropouts as in evaluation."""
    off = "penstock_off"
    for node in model.graph.node:
        if node.op_type == "BatchNormalization":
            del node.output[1:]
            for attribute in node.attribute:
                if attribute.name == "training_mode":
                    attribute.i = 0
        elif node.op_type == "Dropout" and len(node.input) > 2:
            node.input[2] = off
    if any(off in node.input for node in model.graph.node):
        model.graph.initializer.append(
            onnx.helper.make_tensor(off, onnx.TensorProto.BOOL, [], [False]))
    return model


def check_outputs(module, inputs, path):
    """The largest difference of an output from the module's, both in evaluation,
    relative to the largest value; none without ONNX Runtime."""
    try:
        import onnxruntime
    except ImportError:
        return None
    named = sorted({d for _, _, dims in inputs for d in dims if isinstance(d, str)})
    arrays = make_example(inputs, {name: 5 + i for i, name in enumerate(named)})
    form = pathlib.Path(path).with_suffix(".check.onnx")  # beside external data
    try:
        onnx.save(make_inference_form(onnx.load(path, load_external_data=False)), form)
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 3  # errors
        session = onnxruntime.InferenceSession(str(form), settings,
                                               providers=["CPUExecutionProvider"])
        got = session.run(None, {n: a.numpy() for (n, _, _), a in zip(inputs, arrays)})
    finally:
        form.unlink(missing_ok=True)
    training = module.training
    with torch.no_grad():
        want = module.eval()(*arrays)
    module.train(training)
    want = [want] if torch.is_tensor(want) else list(want)
    return max(float((torch.from_numpy(g) - w).abs().max() / w.abs().max().clamp(min=1e-30))
               for g, w in zip(got, want))


def find_frozen(module, path):
    """Float tensors of the file that the module does not train, statistics aside."""
    names = {t.name for t in onnx.load(path, load_external_data=False).graph.initializer}
    held = [name for name, value in module.named_buffers()
            if value.is_floating_point()
            and not name.endswith(("running_mean", "running_var"))]
    held += [n for n, p in module.named_parameters() if not p.requires_grad]
    return [name for name in held if name in names]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", metavar="FILE.py:NAME")
    parser.add_argument("--input", type=parse_input, action="append", default=[],
                        metavar="NAME:TYPE[DIM,...]", help="once per input, in order")
    parser.add_argument("--output", action="append", metavar="NAME",
                        help="once per output, in order")
    parser.add_argument("--exporter", choices=["dynamo", "torchscript"], default="dynamo",
                        help="torch.export, or the older exporter by tracing")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights")
    parser.add_argument("--state-dict", metavar="FILE.pt", help="other initial weights")
    parser.add_argument("--external-data", action="store_true",
                        help="weights in a second file, for models over 2 GB")
    parser.add_argument("--load", metavar="TRAINED.onnx", help="write a state_dict of this")
    parser.add_argument("-o", required=True, metavar="FILE", dest="out")
    options = parser.parse_args()

    # Of training mode, which is what is wanted, of the older exporter, and of what
    # the exporters use themselves.
    warnings.filterwarnings("ignore", module="torch")
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", message=".*(training mode|TorchScript)")
    torch.manual_seed(options.seed)
    module = make_module(options.module)
    if options.load:
        torch.save(read_weights(module, options.load), options.out)
        print(f"{options.out}: the weights of {options.load}")
        return
    if not options.input:
        parser.error("say what the module takes: --input NAME:TYPE[DIM,...]")
    if options.state_dict:
        module.load_state_dict(torch.load(options.state_dict))
    export(module, options.input, options.output, options.out,
           options.exporter == "dynamo", options.external_data)

    wrong = check_parameters(module, options.out)
    for line in wrong:
        print(f"export.py: error: {line}", file=sys.stderr)
    difference = check_outputs(module, options.input, options.out)
    if difference is not None and not difference < 1e-4:
        wrong.append("outputs")
        print("export.py: error: in evaluation mode, an output differs from the module's "
              f"by {difference:.1e} of its largest value", file=sys.stderr)
    if wrong:
        sys.exit(1)
    count = sum(p.numel() for p in module.parameters() if p.requires_grad)
    print(f"{options.out}: {count} values train; outputs "
          + ("not compared, there is no onnxruntime" if difference is None
             else "equal the module's within 0.01 %"))
    frozen = find_frozen(module, options.out)
    if frozen:
        print("compile it with --freeze='^(" + "|".join(map(re.escape, frozen)) + ")$'")


if __name__ == "__main__":
    main()
