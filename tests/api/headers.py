"""Prepares public headers for Doxygen.

The headers do not contain Doxygen's commands. Each declaration joins the group of its folder, and a header's first
comment goes to the group's page. Protected members, and copies, moves and overrides without a comment, are omitted.
Lines keep their numbers, so that warnings refer to the sources.
"""

import pathlib
import re
import sys

# Each group's title, description and folders; headers of testing.hpp from any folder join the last one.
GROUPS = {
    "arrays": ("Arrays", "What holds numbers: arrays and shapes, masks, random numbers, threads.", ["engine/array"]),
    "tape": ("Tensors and the tape", "What differentiates: tensors, parameters, the tape and its sweep, operations of "
             "one's own.", ["engine/tape", "engine/report"]),
    "operations": ("Operations", "What computes: PyTorch's operations on tensors, each with its gradient.",
                   ["engine/ops"]),
    "layers": ("Layers", "What models are made of: layers with parameters, their first weights, sampling. Inputs of other "
               "shapes than are told throw std::invalid_argument.", ["layers"]),
    "models": ("Models and files", "What is done with whole models and runs: naming, counting, saving, loading.",
               ["layers/model"]),
    "optimizers": ("Optimizers", "What trains: optimizers, schedules of the learning rate, clipping of gradients.",
                   ["optim"]),
    "ranks": ("Several processes", "What trains one model on several machines, in &lt;tapegrad/mpi.hpp&gt;: the component "
              "mpi.", ["optim/mpi"]),
    "reports": ("Pages and reports", "What looks inside: a training step in the browser, attention maps, reports of "
                "gradients.", ["layers/page", "layers/report"]),
    "testing": ("Testing", "What checks, in &lt;tapegrad/testing.hpp&gt;: gradients against differences, steps against "
                "a reference.", ["engine/testing"]),
}

LEFT_OUT = re.compile(r".*\) (const )?(noexcept )?= (default|delete);|.*\boverride( \{.*\}|;)|  ~\w+\(\);")


def group_of(header: pathlib.Path) -> str:
    if header.name == "gradcheck.hpp":
        return "testing"
    groups = [group for group, (_, _, rooms) in GROUPS.items() if str(header.parent) in rooms]
    return groups[0] if groups else sys.exit(f"{header} lies in a room that no group of {__file__} has")


def definitions() -> str:
    return "".join(f"/// @defgroup {group} {title}\n/// {about}\n\n" for group, (title, about, _) in GROUPS.items())


def for_doxygen(header: pathlib.Path, text: str) -> str:
    text = re.sub(r"\bexplicit\(.*\) ", "", text)  # Doxygen mistakes it for a function
    lines = text.replace(" et al. ", " et al.\\ ").splitlines()  # not the end of a sentence
    start = lines.index("#pragma once")
    inside = next((space for space in ("testing", "mpi", "tapegrad") if f"{space} {{" in text), None)
    if inside is None:  # nothing public
        return "\n".join([""] * start + lines[start:])
    group = group_of(header)
    lines[0] = lines[0].replace("/// ", f"/// @details <b>{header.name}</b>: ", 1)
    lines[start] = f"/// @addtogroup {group}"
    for i, line in enumerate(lines):
        documented = "///<" in line or lines[i - 1].lstrip().startswith("///")
        if re.match(rf"namespace (\w+::)?{inside} \{{", line):
            lines[i] += f" /** @addtogroup {group} */ /** @{{ */"
        elif re.match(rf"}}  // namespace (\w+::)?{inside}$", line):
            lines[i] = "/** @} */ " + line
        elif line.startswith("#define") and documented:
            first = next(k for k in range(i, 0, -1) if not lines[k - 1].startswith("///"))
            lines[first - 1] = f"/// @ingroup {group}"  # the empty line before the comment
        elif line == " protected:":
            lines[i] = " private:"
        elif LEFT_OUT.fullmatch(line) and not documented:
            lines[i] = ""
    return "\n".join(lines)
