"""Tests pages of arrays averaged along selectable axes, of empty arrays, and of unusual names."""

import numpy as np

from operations import Operations
from tape import Tape, array_json


def averaged(array, factor):
    """The format's array, the mean of every `factor` elements along the first axis."""
    stored = array.reshape(-1, factor, *array.shape[1:]).mean(1)
    return {**array_json(stored), "pooled": [factor] + [1] * (array.ndim - 1)}


def cases(Base):
    """The test cases, derived from the class with the browser."""

    class Averaged(Base):
        """A value stored in full next to one averaged along the batch."""

        def setUp(self):
            tape = Tape("averaged")
            f = Operations(tape)
            x = np.arange(16.0).reshape(16, 1, 1) + np.zeros((16, 2, 2))
            X = tape.parameter("X", x).named("X", axis_names=["batch", "", ""])
            X.fields["axes"] = [list("abcdefghijklmnop"), None, None]
            f.relu(X)
            step = tape.step()
            step["nodes"][0]["value"] = averaged(x, 4)
            self.open_step(step)

        def chosen(self, where):
            """The selected batch entry and the number of options."""
            script = """
                const label = [...document.querySelectorAll(`${arguments[0]} .choices label`)]
                  .find((label) => label.firstChild.textContent === "batch");
                const select = label.querySelector("select");
                return [select.selectedOptions[0].textContent, select.options.length];"""
            return self.run_js(script, where)

        def shown(self, number):
            return self.run_js(
                """
                const node = currentStep().nodes[arguments[0]];
                return matrixOf(node.value, lastAxes(node.value.shape), indexOf(node, node.value)).at(0, 0);""",
                number,
            )

        def test_shows_the_same_index_in_both(self):
            self.assertEqual(self.chosen("#stage"), ["a", 16])
            select = self.find("#stage .choices select")
            self.run_js("arguments[0].value = '9'; arguments[0].dispatchEvent(new Event('change'))", select)
            self.assertEqual(self.chosen("#stage"), ["j", 16])
            self.assertEqual(self.shown(1), 9)
            self.assertEqual(self.shown(0), 9.5)  # the mean of 8 to 11

        def test_a_mean_is_named_by_its_range(self):
            self.run_js("state.places.set('batch', 9); inspect(currentStep().nodes[0])")
            self.assertEqual(self.chosen("#inspector"), ["8–11", 4])
            select = self.find("#inspector .choices label:last-of-type select")
            self.run_js("arguments[0].selectedIndex = 3; arguments[0].dispatchEvent(new Event('change'))", select)
            self.assertEqual(self.chosen("#inspector"), ["12–15", 4])
            self.assertEqual(self.shown(1), 12)

        def test_labels_belong_to_whole_axes(self):
            self.run_js("state.places.set('batch', 2); inspect(currentStep().nodes[1])")
            self.assertEqual(self.chosen("#inspector"), ["c", 16])

        def test_attention_names_averaged_batch_entries(self):
            tape = Tape("attention")
            f = Operations(tape)
            x = tape.parameter("x", np.random.default_rng(1).normal(size=(4, 3, 4)))
            f.attention(x, x, x, 2)
            step = tape.step()
            attention = step["nodes"][-1]["attention"]
            attention["weights"] = averaged(np.ones((4, 2, 3, 3)) / 3, 2)
            attention["gradient"] = None
            self.open_step(step)
            self.run_js("state.places.set('batch', 3); go({ view: 'attention' })")
            self.assertEqual(self.chosen("#attention"), ["2–3", 2])

    class Empty(Base):
        """An operation on arrays of shape (0, 3)."""

        def test_says_that_there_are_no_numbers(self):
            tape = Tape("empty")
            f = Operations(tape)
            tape.backward(f.sum(f.relu(tape.parameter("x", np.zeros((0, 3))))))
            self.open_step(tape.step())
            for moment in range(4):
                self.run_js("go({ moment: arguments[0] })", moment)
                self.assertIn("no numbers", self.find("#stage").text)
            self.run_js("inspect(currentStep().nodes[0])")
            self.assertEqual(self.find("#inspector .pair").text.count("no numbers"), 2)
            self.run_js("go({ view: 'health' })")
            self.assertNotIn("dead", self.find("#health").text)
            self.assertNotIn("is 0 everywhere", self.find("#health").text)

        def test_attention_without_weights_is_only_in_the_story(self):
            tape = Tape("empty")
            f = Operations(tape)
            x = tape.parameter("x", np.zeros((1, 2, 4)))
            f.attention(x, x, x, 2)
            step = tape.step()
            step["nodes"][-1]["attention"]["weights"] = array_json(np.zeros((0, 2, 2, 2)))
            self.open_step(step)
            self.assertFalse(self.find("#tab-attention").is_displayed())

    class Names(Base):
        """Layer paths from users' names: "a..b" is in "a."."""

        def test_opens_with_layers_that_end_in_a_dot(self):
            for layer in ("a.", ".", "a..b"):
                tape = Tape("dots")
                f = Operations(tape)
                f.relu(tape.parameter(f"{layer}.w", np.ones(3)))
                step = tape.step()
                step["nodes"][1]["layer"] = layer
                self.open_step(step)
                self.assertIn("relu", self.find("#tree").text)
                self.assertIn("relu", self.find("#stage").text)

    return [Averaged, Empty, Names]
