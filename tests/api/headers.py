"""Prepares the public headers for Doxygen.

The headers contain no Doxygen commands. Declarations go into the group of their folder, the header's first comment to
that group's page. Protected members, and copies, moves and overrides without a comment, are omitted. Line numbers do not
change, so warnings name the right line.
"""

import pathlib
import re
import sys

# Each group's title, summary and folders. TESTING lists the headers of testing.hpp, the last group.
TESTING = ["compare.hpp", "doctest.hpp", "gradcheck.hpp", "gradcheck_page.hpp"]
GROUPS = {
    "arrays": ("Arrays", "Arrays and shapes, masks, random numbers, threads.", ["engine/array"]),
    "tape": ("Tensors and the tape", "Automatic differentiation: tensors, parameters, the tape and its backward pass, "
             "your own operations.", ["engine/tape"]),
    "operations": ("Operations", "PyTorch's operations on tensors, each with its gradient.",
                   ["engine/ops"]),
    "layers": ("Layers", "Layers with parameters, initialization, sampling. Inputs of shapes other than documented throw "
               "std::invalid_argument.", ["layers"]),
    "models": ("Models and files", "Naming, counting, saving and loading the parameters of models and runs.",
               ["layers/model"]),
    "optimizers": ("Optimizers", "Optimizers, learning-rate schedules, gradient clipping.",
                   ["optim"]),
    "ranks": ("Several processes", "Training one model with several processes: the component mpi, in "
              "&lt;tapegrad/mpi.hpp&gt;.", ["optim/mpi"]),
    "reports": ("Pages and reports", "Inspecting models: a training step in the browser, attention maps, listings, "
                "gradient reports.", ["inspect", "inspect/page"]),
    "testing": ("Testing", "Checks in &lt;tapegrad/testing.hpp&gt;: gradients against differences, steps against a "
                "reference.", []),
}

LEFT_OUT = re.compile(r".*\) (const )?(noexcept )?= (default|delete);|.*\boverride( \{.*\}|;)|  ~\w+\(\);")


def group_of(header: pathlib.Path) -> str:
    if header.name in TESTING:
        return "testing"
    groups = [group for group, (_, _, folders) in GROUPS.items() if str(header.parent) in folders]
    return groups[0] if groups else sys.exit(f"{header} is in a folder missing from GROUPS in {__file__}")


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
