"""Compares pages written by the library's programs with the programs' output."""

import pathlib
import re
import subprocess

import numpy as np

# Each writes a page if it is built and knows --page; the first always does.
PROGRAMS = ["manual_backward", "attention_levels", "masking", "cross_attention", "contextual_embedding"]


def write_pages(examples, folder):
    """Runs the built examples in a folder. Returns {the page's path: the output}."""
    printed = {}
    for program in PROGRAMS:
        path = pathlib.Path(examples) / program
        run = lambda *arguments: subprocess.run([path, *arguments], check=True, capture_output=True, text=True).stdout
        if program == PROGRAMS[0] or (path.exists() and "--page" in run("--help")):
            page = pathlib.Path(folder) / f"written_{program}.html"
            printed[page] = run("--page", page)
    return printed


def matrices_of(text):
    """Parses a tutorial's output to {"dS": array}: names and shapes next to each other, numbers below each."""
    found = {}
    lines = text.split("\n")
    for i, line in enumerate(lines):
        titles = list(re.finditer(r"(\w+) \(\d+(?:, \d+)?\)(?: {2,}|$)", line))
        if not titles or titles[0].start() != 0 or "".join(title[0] for title in titles) != line:
            continue
        rows = []
        for below in lines[i + 1 :]:
            if not re.fullmatch(r"[-\d. ]+", below):
                break
            rows.append(below)
        for title, end in zip(titles, [title.start() for title in titles[1:]] + [None]):
            numbers = [row[title.start() : end].split() for row in rows]
            found[title[1]] = np.array([row for row in numbers if row], dtype=np.float64)
    return found


def cases(Base, printed):
    """The test cases, derived from the class with the browser. `printed` is the result of write_pages."""

    class ManualBackward(Base):
        """The page and the output of manual_backward agree."""

        def setUp(self):
            self.file = next(file for file in printed if file.stem == "written_manual_backward")
            self.open(self.file)

        def test_shows_the_programs_gradients(self):
            shown = """
                const node = page.steps[0].nodes.find((other) => other.name === arguments[0]);
                const result = tableOf(node, node.gradient, lastAxes(node.gradient.shape), { name: "" });
                return [...result.querySelectorAll("tbody tr")]
                  .map((row) => [...row.cells].slice(1).map((cell) => Number(cell.textContent)));"""
            one_head = printed[self.file].split("\n4. ")[0]
            by_hand = matrices_of(one_head.split("\n3. ")[1])
            names = ["O", "Z", "Wo", "P", "S", "Q", "K", "V", "Wq", "Wk", "Wv", "X"]
            self.assertEqual(list(by_hand), [f"d{name}" for name in names])
            for name in names:
                np.testing.assert_allclose(self.run_js(shown, name), by_hand[f"d{name}"], atol=5.1e-5, err_msg=name)
            loss = matrices_of(one_head.replace("L ()", "L (1)"))["L"].item()
            self.assertAlmostEqual(float(self.find("#summary strong").text.split(" = ")[1]), loss, places=3)

        def test_explains_dS(self):
            self.go_to(0, "P")
            self.assertEqual(self.formulas("backward"), ["dS = P ⊙ (dP − Σ dP ⊙ P)"])
            self.assertIn("computes dS, the gradient of S", self.find("#stage .meaning").text)

        def test_explains_the_origin_of_dK(self):
            self.go_to(0, "K")
            self.assertIn("Where dK comes from: dK = d(Kᵀ)ᵀ, d(Kᵀ) = Qᵀ d(Q Kᵀ)", self.find("#stage .equations").text)

        def test_explains_the_zero_gradient_of_a_bias_of_the_keys(self):
            self.go_to(1, "k")
            self.assertIn("softmax does not depend on such a shift", self.find("#stage .finding").text)
            self.assertEqual(self.formulas("backward"), ["d(X Wk) = dk", "dbk = Σ dk"])

        def go_to(self, step, name):
            self.run_js("go({ step: arguments[0] })", step)
            script = """
                const node = currentStep().nodes.find((other) => other.name === arguments[0]);
                go({ moment: node.backwardMoment.number });"""
            self.run_js(script, name)

    return [ManualBackward]
