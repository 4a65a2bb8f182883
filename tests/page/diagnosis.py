"""Tests the diagnosis of faulty steps on the pages of sample.py."""

import numpy as np
from selenium.webdriver import Keys

from decode import decode, place_of
from operations import Operations
from tape import Tape


def cases(Base):
    """The test cases, derived from the class with the browser."""

    class Health(Base):
        """broken, large and training: the health view of models."""

        def text_of(self, step):
            self.run_js("go({ step: arguments[0], view: 'health' })", step)
            return self.find("#health").text

        def test_names_the_operation_with_the_first_nan(self):
            self.open_sample("broken")
            self.assertIn("Infinity first occurred in the forward pass at log, which computed log(p)", self.text_of(0))
            gradients = [cell.text for cell in self.find_all("#health tbody td:nth-child(4)")]
            self.assertEqual(gradients, ["not finite"] * 3)
            self.run_js("go({ view: 'story', moment: currentStep().operations.length - 2 })")
            self.assertIn("2 NaN", [note.text for note in self.find_all("#stage .note.wrong")])

        def masked(self, hidden, also_added=False):
            """The findings for the softmax of masked scores, with a constant -inf on the tape."""
            tape = Tape("masked")
            f = Operations(tape)
            scores, infinity = tape.parameter("scores", np.array([[0.5, -0.5], [1.0, 2.0]])), tape.constant(-np.inf)
            f.softmax(f.masked_fill(scores, np.array(hidden), -np.inf, infinity)).named("P")
            if also_added:
                f.add(scores, infinity)
            self.open_step(tape.step())
            return self.text_of(0)

        def test_infinity_from_a_mask_is_no_problem(self):
            self.assertIn("No problems found", self.masked([[False, True], [False, False]]))

        def test_a_fully_masked_row_makes_nan(self):
            text = self.masked([[False, True], [True, True]])
            self.assertIn("NaN first occurred in the forward pass at softmax, which computed P: 2 of 4 numbers", text)

        def test_infinity_used_by_more_than_masks_is_a_problem(self):
            text = self.masked([[False, True], [False, False]], also_added=True)
            self.assertIn("Infinity first occurred in the forward pass in the constant", text)

        def added(self, mask, also_read=False):
            """The findings for the softmax of scores plus a mask."""
            tape = Tape("added")
            f = Operations(tape)
            scores = tape.parameter("scores", np.array([[0.5, -0.5], [1.0, 2.0]]))
            masked = f.add(scores, tape.constant(np.array(mask), "mask"))
            f.softmax(f.times(masked, 0.5)).named("P")
            if also_read:
                f.sum(masked)
            self.open_step(tape.step())
            return self.text_of(0)

        def test_minus_infinity_added_before_softmax_is_no_problem(self):
            self.assertIn("No problems found", self.added([[0, -np.inf], [0, 0]]))
            text = self.added([[0, -np.inf], [-np.inf, -np.inf]])
            self.assertIn("NaN first occurred in the forward pass at softmax, which computed P: 2 of 4 numbers", text)

        def test_infinity_added_for_other_operations_is_a_problem(self):
            began = "Infinity first occurred in the forward pass in the constant mask"
            self.assertIn(began, self.added([[0, -np.inf], [0, 0]], also_read=True))
            self.assertIn(began, self.added([[0, np.inf], [0, 0]]))

        def test_a_gradient_is_0_everywhere_if_all_its_numbers_are(self):
            tape = Tape("large")
            f = Operations(tape)
            x = tape.parameter("x", np.array([1.0, 2.0]))
            tape.backward(f.sum(f.times(x, 0.5)))
            step = tape.step()
            step["nodes"][0]["gradient"]["statistics"]["norm"] = None  # beyond the range of a double
            self.open_step(step)
            self.assertNotIn("is 0 everywhere", self.text_of(0))

        def test_reports_vanishing_gradients(self):
            self.open_sample("broken")
            self.assertRegex(
                self.text_of(1), r"Gradients vanish: from layers\.7 back to layers\.0 they shrink by a factor of \d+"
            )
            self.assertEqual(len(self.find_all("#health svg.curve")), 1)

        def test_reports_unreached_parameters_and_dead_units(self):
            self.open_sample("broken")
            text = self.text_of(2)
            self.assertIn("The loss does not depend on unused.weight", text)
            self.assertRegex(text, r"\d+ of the 32 units of relu .* are dead")
            self.assertEqual(self.find("#tab-health").text, f"Health ({len(self.find_all('#health .finding.wrong'))})")

        def test_norms_are_those_of_the_data(self):
            data = self.open_sample("classifier")
            self.text_of(0)
            parameters = [node for node in data["steps"][0]["nodes"] if node["kind"] == "parameter"]
            rows = self.find_all("#health tbody tr")
            self.assertEqual(len(rows), len(parameters))
            for row, node in zip(rows, parameters):
                cells = [cell.text for cell in row.find_elements("css selector", "th, td")]
                self.assertEqual(cells[0], node["name"])
                self.assertAlmostEqual(float(cells[2]) / np.linalg.norm(decode(node["value"])), 1, places=2)
            self.assertIn("attention.k_proj.bias is 0", self.find("#health").text)

        def test_an_unnamed_loss_is_called_the_loss(self):
            self.open_sample("classifier")
            self.run_js("go({ moment: 9 })")
            self.assertEqual(
                self.find("#stage .caption").text.split(". ")[1],
                "Backward through cross_entropy: its rule computes dlogits from dloss.",
            )
            self.assertIn("dlogits = (softmax(logits) − one_hot) dloss / n", self.find("#stage .equations").text)

        def test_draws_the_loss_over_the_steps(self):
            self.open_sample("training")
            self.text_of(0)
            dots = self.find_all("#health svg.curve")[0].find_elements("css selector", "circle")
            self.assertEqual(len(dots), 9)
            self.run_js("arguments[0].dispatchEvent(new MouseEvent('click'))", dots[3])
            self.assertEqual(self.find("#step-label").text, "step 15")
            self.assertEqual(self.find("#left-out").text, "Of 41 steps every fifth is kept.")

        def test_notes_averaged_cells(self):
            data = self.open_sample("large")
            note = self.find("#stage .card .note:last-of-type").text
            pooled = data["steps"][0]["nodes"][0]["value"]["pooled"]
            self.assertEqual(note, f"each cell: mean of {pooled[0]} × {pooled[1]}")
            canvas = self.find("#stage canvas.heatmap")
            self.assertRegex(self.hover(canvas, 3, 3)[0], r"^words\.weight\[\d+–\d+, \d+\] = \S+, a mean$")

        def test_notes_averaged_attention_weights(self):
            """Weights of 100 by 100 are stored as 25 by 50, their mask in full."""
            self.open_sample("large")
            self.run_js("go({ view: 'attention' })")
            self.assertIn("A cell is the mean of 8 weights.", self.find("#attention .caption").text)
            canvas = self.find("#attention .head canvas")
            right, bottom = canvas.size["width"] - 2, canvas.size["height"] - 10
            lines = self.hover(canvas, right, bottom)
            self.assertRegex(lines[0], r"^P\[0, 0, 96–99, 98–99\] = \S+, a mean$")
            self.assertEqual(lines[1:], ["queries 96–99, keys 98–99", "hidden by the mask"])
            self.assertEqual(self.hover(canvas, right - 40, bottom)[-1], "hidden by the mask")
            self.assertNotIn("hidden", self.hover(canvas, right - 85, bottom)[-1])

    class Trouble(Base):
        """trouble: pages opened because of an error."""

        def setUp(self):
            self.data = self.open_sample("trouble")

        def open_at(self, **place):
            """Reopens the page with its second step opened elsewhere."""
            script = """
                Object.assign(page.steps[1].opened_at, arguments[0]);
                page.steps.forEach((step) => { delete step.moments; delete step.findings; });
                startPage()"""
            self.run_js(script, place)

        def number_of(self, name):
            return next(i for i, node in enumerate(self.data["steps"][1]["nodes"]) if node["name"] == name)

        def test_opens_where_the_backward_pass_stopped(self):
            self.assertEqual(self.find("#step-label").text, "anomaly")
            self.assertEqual(self.find("#stage h2").text.split(), ["←", "backward", "mul"])
            self.assertEqual(self.find("#stage .caption").text, "The backward pass stopped here.")
            self.assertIn("stopped at S", self.find("#summary").text)
            self.assertEqual(self.moment(), self.run_js("return currentStep().moments.length - 1"))

        def test_shows_the_result_of_the_last_rule(self):
            """An anomaly's NaN has propagated to the input, and no further."""
            self.run_js(
                """
                const S = page.steps[1].nodes[arguments[0]], scores = page.steps[1].nodes[S.inputs[0]];
                S.contributions = [scores.value];
                scores.gradient = scores.value;
                scores.reached = true;""",
                self.number_of("S"),
            )
            self.open_at()
            caption = "Backward through mul: its rule computes d(Q Kᵀ) from dS. The backward pass stopped here."
            self.assertEqual(self.find("#stage .caption").text, caption)
            self.run_js("go({ moment: 4 })")
            self.assertIn("The backward pass stopped at S, before reaching it.", self.find("#stage").text)

        def test_opens_at_a_forward_moment(self):
            self.open_at(node=self.number_of("P"), backward=False)
            self.assertEqual(self.find("#stage h2").text.split(), ["→", "forward", "softmax"])

        def test_opens_at_the_forward_moment_if_there_is_no_backward_one(self):
            self.open_at(node=self.number_of("Q"))
            self.assertEqual(self.find("#stage h2").text.split(), ["→", "forward", "matmul"])

        def test_opens_at_a_parameter(self):
            self.open_at(node=self.number_of("Wq"))
            self.assertEqual(self.find("#inspector h2").text, "Wq")
            self.assertIn("[mul] expected finite values, got NaN", self.find("#inspector").text)

        def test_an_error_may_be_off_the_tape(self):
            step = dict(self.data["steps"][0], opened_at={"node": -1, "backward": False, "text": "w: analytic 0"})
            self.open_step(step)
            self.assertIn("w: analytic 0", self.find("#trouble").text)
            self.assertNotIn("Show where", self.find("#trouble").text)
            self.assertEqual(self.moment(), 0)
            self.assertFalse(self.find("#inspector").is_displayed())
            self.run_js("go({ view: 'health' })")
            self.assertIn("w: analytic 0", self.find("#health .finding.wrong").text)

        def test_opens_a_step_without_nodes(self):
            opened_at = {"node": -1, "backward": False, "text": "w: analytic 0"}
            self.open_step({"label": "", "loss": -1, "nodes": [], "opened_at": opened_at})
            self.assertEqual(self.find("#stage").text, "The tape recorded nothing in this step.")
            self.assertIn("w: analytic 0", self.find("#trouble").text)
            self.press(Keys.ARROW_RIGHT, " ")
            self.wait_for(lambda: "Play" in self.find("#play").text, 4)
            self.run_js("go({ view: 'health' })")
            self.assertIn("w: analytic 0", self.find("#health").text)

        def test_shows_the_error_until_it_is_dismissed(self):
            banner = self.find("#trouble")
            self.assertIn("[mul] expected finite values, got NaN", banner.text)
            self.press(Keys.HOME)
            self.assertEqual(self.moment(), 0)
            banner.find_element("xpath", ".//button[text()='Show where']").click()
            self.assertEqual(self.find("#stage h2").text.split()[1:], ["backward", "mul"])
            self.find("#trouble .close").click()
            self.run_js("go({ moment: 2 })")
            self.assertFalse(banner.is_displayed())
            self.run_js("go({ step: 2 })")
            self.assertIn("analytic 0.25, numeric 0.5", banner.text)
            self.run_js("go({ step: 0 })")
            self.assertFalse(banner.is_displayed())

        def test_reports_the_stopped_pass_instead_of_an_independent_loss(self):
            self.run_js("go({ moment: 4 })")
            self.assertIn("The backward pass stopped at S, before reaching it.", self.find("#stage").text)
            self.find("#tab-health").click()
            text = self.find("#health").text
            stopped = "The backward pass stopped at S, before reaching 4 parameters, X to Wv: no gradient there."
            self.assertIn(stopped, text)
            self.assertIn("[mul] expected finite values, got NaN", text)
            self.assertNotIn("does not depend", text)

        def test_a_sum_without_all_parts_is_incomplete(self):
            """Stopped at K: X has only V's contribution, and Q propagates nothing."""
            self.run_js(
                """
                const step = page.steps[1], node = (name) => step.nodes.find((other) => other.name === name);
                step.nodes.forEach((other) => { if (!other.reached) other.gradient = other.value; });
                for (const name of ["V", "K", "Q"]) node(name).reached = true;
                node("V").contributions = [node("X").value, node("Wv").value];
                node("Wq").gradient = node("Wk").gradient = null;"""
            )
            self.open_at(node=self.number_of("K"))
            self.run_js("inspect(currentStep().nodes.find((node) => node.name === 'X'))")
            self.assertIn("The backward pass stopped before the gradient was complete.", self.find("#inspector").text)

        def test_shows_both_gradients_and_their_largest_difference(self):
            self.run_js("go({ step: 2 }); goToTrouble(currentStep())")
            heads = [head.text for head in self.find_all("#inspector .pair h3")]
            self.assertEqual(heads, ["hidden.weight", "gradient (tape)", "numeric", "difference"])
            words = self.find("#inspector .apart").text
            self.assertIn("most at [2, 1]: 0.25 on the tape, 0.5 numeric", words)
            canvas = self.find_all("#inspector canvas")[3]
            lines = self.hover(canvas, 75, canvas.size["height"] - 30)
            self.assertEqual(place_of(lines[0].split(" = ")[0] + " = 0")[0], (2, 1))
            self.assertAlmostEqual(float(lines[0].split(" = ")[1]), -0.25, places=4)
            red = "const c = arguments[0]; return [...c.getContext('2d').getImageData(51, 61, 1, 1).data]"
            self.assertEqual(self.run_js(red, canvas), [224, 0, 32, 255])

        def test_finds_different_gradients(self):
            self.run_js("go({ step: 2, view: 'health' })")
            wrong = [line.text for line in self.find_all("#health .finding.wrong")]
            self.assertEqual(len(wrong), 2)
            self.assertIn("most at [2, 1]: 0.25 on the tape, 0.5 numeric", wrong[1])

    return [Health, Trouble]
