"""Tests a user's actions on the pages of sample.py."""

import re

import numpy as np
from selenium.webdriver import ActionChains, Keys

from decode import decode, place_of
from operations import Operations
from sample import EVIL
from tape import Tape


def cases(Base):
    """The test cases, derived from the class with the browser."""

    class Story(Base):
        """manual_backward: a lesson's page."""

        def setUp(self):
            self.data = self.open_sample("manual_backward")

        def test_opens_at_the_first_operation(self):
            self.assertEqual(self.find("#stage h2").text.split(), ["→", "forward", "matmul"])
            self.assertIn("matmul reads X and Wq and computes Q (3, 4).", self.find("#stage .caption").text)
            names = [row.text.split("\n")[0] for row in self.find_all("#tree .name")]
            self.assertEqual(names[:4], ["Q = X Wq", "K = X Wk", "V = X Wv", "Kᵀ"])
            self.assertIn("P = softmax(S)", names)

        def test_highlights_inputs_and_results(self):
            lit = lambda kind: [
                card.text.split("\n")[0] for card in self.find_all(f"#stage .card.{kind} .title strong")
            ]
            self.assertEqual((lit("read"), lit("written")), (["X", "Wq"], ["Q"]))
            self.go_to("softmax", backward=True)
            self.assertEqual((lit("read"), lit("written")), (["dP"], ["dS"]))
            self.assertEqual(
                [row.text.split("\n")[0] for row in self.find_all("#tree .current .name")], ["P = softmax(S)"]
            )

        def go_to(self, operation, backward=False):
            self.run_js(
                "const [operation, backward] = arguments;"
                "const wanted = (moment) => moment.node.operation === operation && moment.backward === backward;"
                "go({ moment: currentStep().moments.find(wanted).number })",
                operation,
                backward,
            )

        def test_explains_dS(self):
            self.go_to("softmax", backward=True)
            self.assertEqual(self.formulas("backward"), ["dS = P ⊙ (dP − Σ dP ⊙ P)"])
            self.go_to("mul", backward=True)
            meaning = "Each element of dS is the derivative of the loss L with respect to the same element of S"
            self.assertIn(meaning, self.find("#stage").text)

        def test_explains_the_results_of_the_rule(self):
            self.go_to("softmax", backward=True)
            self.assertIn("From it, the rule of softmax computes dS, the gradient of S.", self.find("#stage").text)
            self.assertIn("Where dP comes from: dP = dZ Vᵀ", self.find("#stage").text)

        def test_introduces_itself_once(self):
            self.assertIn("Press Play, or → to step.", self.find("#stage .introduction").text)
            self.press(Keys.ARROW_RIGHT)
            self.assertEqual(self.find_all("#stage .introduction"), [])

        def test_adds_the_sum_over_broadcast_axes(self):
            self.run_js("go({ step: 1, moment: 8 })")
            matmul = "page.steps[1].nodes.find((node) => node.name === 'k').inputs[0]"
            self.run_js(f"go({{ moment: page.steps[1].nodes[{matmul}].backwardMoment.number }})")
            self.assertEqual(self.formulas("backward"), ["dX = d(X Wk) Wkᵀ", "dWk = Σ Xᵀ d(X Wk)"])
            self.run_js(
                """
                const k = page.steps[1].nodes.find((node) => node.name === "k");
                k.rules[1] = "db = dy";
                delete page.steps[1].moments;
                go({ step: 1 });
                go({ moment: k.backwardMoment.number });"""
            )
            self.assertEqual(self.formulas("backward"), ["d(X Wk) = dk", "dbk = Σ dk"])

        def test_shows_no_rule_for_a_constant_and_keeps_its_symbol(self):
            self.run_js("page.steps[0].nodes[14].name = ''; delete page.steps[0].moments; go({ moment: 10 })")
            self.assertEqual(self.formulas("forward"), ["L = mean((O − t)²)"])
            self.assertEqual(self.formulas("backward"), ["dO = 2/n (O − t) dL"])

        def test_puts_negative_numbers_in_parentheses(self):
            self.run_js(
                """
                const add = page.steps[0].nodes.find((node) => node.operation === "mul");
                add.formula = "y = m x";
                page.steps[0].nodes[add.inputs[0]].name = "-2";
                delete page.steps[0].moments;
                go({ moment: 5 })"""
            )
            self.assertEqual(self.formulas("forward"), ["S = m (-2)"])

        def test_values_without_axes_take_those_of_their_neighbors(self):
            self.run_js(
                "go({ step: 1 }); go({ moment: currentStep().nodes.find((n) => n.name === 'k').backwardMoment.number })"
            )
            choices = [label.text.split("\n")[0].split()[0] for label in self.find_all("#stage .choices label")]
            self.assertEqual(choices, ["batch"])
            self.run_js("go({ moment: currentStep().operations.findIndex((node) => node.operation === 'reshape') })")
            choices = [label.text.split("\n")[0] for label in self.find_all("#stage .choices label")]
            self.assertEqual([choice.split()[0] for choice in choices], ["batch", "token"])

        def test_explains_the_origin_of_dK(self):
            self.run_js("go({ moment: currentStep().nodes.find((node) => node.name === 'K').backwardMoment.number })")
            self.assertIn("dK = d(Kᵀ)ᵀ, d(Kᵀ) = Qᵀ d(Q Kᵀ), d(Q Kᵀ) = 0.5 dS", self.find("#stage .equations").text)

        def test_omits_double_transposes(self):
            self.assertIn("dQ = d(Q Kᵀ) K, d(Q Kᵀ) = 0.5 dS", self.find("#stage .equations").text)
            self.run_js("go({ moment: currentStep().operations[4].forwardMoment.number })")
            self.assertEqual(self.formulas("backward"), ["dQ = d(Q Kᵀ) K", "d(Kᵀ) = Qᵀ d(Q Kᵀ)"])
            shapes = [shape.text for shape in self.find_all("#stage .heading.backward .formula:first-child small")]
            self.assertEqual(shapes, ["(3, 4)", "(3, 3)", "(3, 4)"])

        def test_says_when_parts_were_not_kept(self):
            self.run_js(
                "page.steps[0].nodes.forEach((node) => delete node.contributions);"
                "delete page.steps[0].moments; go({ moment: 18 })"
            )
            self.assertIn("all of dX; its parts were not kept", self.find("#stage").text)

        def test_knows_symbols_next_to_an_empty_rule(self):
            self.run_js("page.steps[0].nodes.at(-1).rules[1] = ''; delete page.steps[0].moments; go({ moment: 10 })")
            self.assertEqual(self.formulas("backward"), ["dO = 2/n (O − t) dL"])

        def test_sums_the_gradients_of_a_value_used_three_times(self):
            K = "go({ moment: currentStep().nodes.find((node) => node.name === 'K').backwardMoment.number })"
            self.run_js(K)
            heads = [head.text for head in self.find_all("#stage .sum .card strong")]
            self.assertEqual(heads, ["from V", "from K", "from Q", "dX so far"])
            self.press(Keys.ARROW_RIGHT)
            heads = [head.text for head in self.find_all("#stage .sum .card strong")]
            self.assertEqual(heads, ["from V", "from K", "from Q", "dX"])
            canvas = self.find_all("#stage .sum canvas")[-1]
            place, number = place_of(self.hover(canvas, canvas.size["width"] - 5, 5)[0])
            X = next(node for node in self.data["steps"][0]["nodes"] if node["name"] == "X")
            self.assertAlmostEqual(number, decode(X["gradient"])[place], places=5)

        def test_explains_the_zero_gradient_of_a_bias_of_the_keys(self):
            self.run_js("go({ step: 1 })")
            self.find("#tab-health").click()
            self.assertIn(
                "The gradient of bk is 0 up to rounding. This is correct: a bias of the keys",
                self.find("#health").text,
            )
            self.assertIn("softmax does not depend on such a shift", self.find("#health").text)
            self.assertIn("0: softmax does not depend on a bias of the keys", self.find("#health table").text)
            self.run_js(
                "const k = currentStep().nodes.find((node) => node.name === 'k');"
                "go({ view: 'story', moment: k.backwardMoment.number })"
            )
            self.assertIn("softmax does not depend", self.find("#stage .finding").text)

        def test_steps_by_keys_and_buttons(self):
            self.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
            self.assertEqual(self.moment(), 1)
            self.press(Keys.END)
            self.assertEqual(self.moment(), 19)
            self.find("#back").click()
            self.assertEqual(self.moment(), 18)
            self.find("#first").click()
            self.assertEqual(self.moment(), 0)
            self.press(" ")  # the focused button handles the space key itself
            self.assertEqual(self.moment(), 0)

        def test_space_plays_and_pauses(self):
            self.run_js("place('speed').value = '16'")
            self.press(" ")
            self.wait_for(lambda: self.moment() > 1)
            self.press(" ")
            stopped = self.moment()
            self.assertIn("Play", self.find("#play").text)
            self.assertEqual(self.moment(), stopped)

        def test_the_slider_announces_its_position(self):
            slider = self.find("#moment")
            slider.send_keys(Keys.ARROW_RIGHT)
            self.assertEqual(self.moment(), 1)
            self.assertEqual(slider.get_attribute("aria-valuetext"), "forward: matmul K, 2 of 20")
            self.assertEqual(
                self.find("#announcement").get_attribute("textContent"), "matmul reads X and Wk and computes K (3, 4)."
            )

        def test_explains_numbers_in_tooltips(self):
            self.go_to("softmax", backward=True)
            canvas = self.find("#stage .cell.backward canvas")
            lines = self.hover(canvas, canvas.size["width"] - 55, canvas.size["height"] - 5)
            S = next(node for node in self.data["steps"][0]["nodes"] if node["name"] == "S")
            place, number = place_of(lines[0])
            self.assertEqual((place, np.float32(number)), ((2, 1), decode(S["gradient"])[2, 1]))
            self.assertEqual(lines[1], "query: bank, key: river")
            self.assertRegex(lines[2], r"^S\[2, 1\] \+ 0\.01 changes the loss L by about 0\.0006\d+$")

        def test_reads_heat_maps_by_keys(self):
            canvas = self.find("#stage canvas.heatmap")
            self.run_js("arguments[0].focus()", canvas)
            self.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
            X = decode(next(node for node in self.data["steps"][0]["nodes"] if node["name"] == "X")["value"])
            said = self.find("#announcement").get_attribute("textContent")
            self.assertEqual(said, f"X[2, 1] = {X[2, 1]:g}. token: bank")
            self.assertEqual(self.moment(), 0)

        def test_steps_of_the_page(self):
            self.find("#step").send_keys(Keys.ARROW_RIGHT)
            self.assertEqual(self.find("#step-label").text, "several heads")
            self.assertIn("q = (X Wq) + bq", self.find("#tree").text)

        def test_without_a_backward_pass_there_is_no_backward_half(self):
            shown = lambda: [half.text for half in self.find_all(".halves span") if half.is_displayed()]
            forward, backward = self.find_all(".halves span")
            self.assertEqual(shown(), ["→ forward", "← backward"])
            self.assertEqual(len(self.find_all("#stage .heading")), 2)
            self.open_step(dict(self.data["steps"][0], loss=-1, nodes=self.without_gradients()))
            self.assertEqual(shown(), ["→ forward"])
            self.assertEqual(len(self.find_all("#stage .heading")), 1)

        def without_gradients(self):
            nodes = [{**node, "gradient": None, "reached": False} for node in self.data["steps"][0]["nodes"]]
            return [{key: node[key] for key in node if key != "contributions"} for node in nodes]

        def test_the_track_is_divided_where_the_backward_pass_starts(self):
            operations = self.run_js("return currentStep().operations.length / currentStep().moments.length")
            self.run_js(
                "page.steps[0].nodes.forEach((node) => { if (node.name !== 'L') node.reached = false; });"
                "delete page.steps[0].moments; go({})"
            )
            self.assertEqual(operations, 0.5)
            widths = self.run_js("return [...document.querySelectorAll('.halves span')].map((s) => s.offsetWidth)")
            self.assertAlmostEqual(widths[0] / sum(widths), 10 / 11, places=2)

        def test_numbers_unnamed_values_as_on_the_tape(self):
            """Operations and parameters are numbered by their index on the tape, which has no constants."""
            tape = Tape("numbers")
            f = Operations(tape)
            x, zeros = tape.constant(np.ones((2, 3))), tape.constant(np.zeros((2, 3)))
            f.relu(f.layer_norm(f.add(x, zeros), tape.parameter("w" * 9, np.ones(3)), tape.parameter("", np.ones(3))))
            self.open_step(tape.step())
            labels = self.run_js("return currentStep().nodes.map((node) => node.label)")
            self.assertEqual(labels[:2], ["constant #0", "constant #1"])
            self.assertEqual(labels[2:], ["add #0", "w" * 9, "parameter #2", "layer_norm #3", "relu #4"])

        def test_selects_indices_along_other_axes(self):
            self.run_js(
                "go({ step: 1, moment: currentStep().moments.find((m) => m.node.operation === 'softmax').number })"
            )
            self.run_js("go({ moment: currentStep().moments.find((m) => m.node.operation === 'softmax').number })")
            choices = self.find_all("#stage .choices select")
            self.assertEqual(
                [choice.find_element("xpath", "..").text.split("\n")[0].split()[0] for choice in choices],
                ["batch", "head"],
            )
            choices[1].send_keys("1")
            canvas = self.find("#stage canvas.heatmap")
            place, number = place_of(self.hover(canvas, canvas.size["width"] - 5, canvas.size["height"] - 5)[0])
            M = next(node for node in self.data["steps"][1]["nodes"] if node["name"] == "M")
            self.assertEqual(place, (0, 1, 2, 2))
            self.assertEqual(np.float32(number), decode(M["value"])[place])

    class Layers(Base):
        """gpt: folding layers."""

        def setUp(self):
            self.data = self.open_sample("gpt")

        def line(self, name):
            return next(item for item in self.find_all("#tree [role=treeitem]") if item.text.split("\n")[0] == name)

        def test_folds_equal_blocks_into_one_line(self):
            blocks = self.line("blocks.0 … blocks.3")
            self.assertEqual(blocks.text.split("\n"), ["blocks.0 … blocks.3", "4 ×"])
            blocks.find_element("css selector", ".row").click()
            self.assertEqual(blocks.get_attribute("aria-expanded"), "true")
            self.line("blocks.2").find_element("css selector", ".row").click()
            self.assertIn("attention", self.line("blocks.2").text)
            blocks.find_element("css selector", ".row").click()
            self.assertEqual(blocks.text.split("\n"), ["blocks.0 … blocks.3", "4 ×"])

        def test_highlights_the_folded_layer_of_the_current_operation(self):
            self.run_js("go({ moment: 12 })")
            self.assertEqual(self.line("blocks.0 … blocks.3").get_attribute("aria-current"), "step")

        def test_moves_in_the_tree_by_keys(self):
            self.run_js("document.querySelector('#tree [tabindex=\"0\"]').focus()")
            focused = lambda: self.browser.switch_to.active_element.text.split("\n")[0]
            self.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
            self.assertEqual(focused(), "blocks.0 … blocks.3")
            self.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
            self.assertEqual(focused(), "blocks.0")
            self.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
            self.assertEqual(self.moment(), 3)
            self.assertEqual(focused(), "norm1")
            ActionChains(self.browser).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
            self.assertIn("backward", self.find("#stage h2").text)
            self.press(Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
            self.assertEqual(focused(), "blocks.0 … blocks.3")
            self.press(Keys.HOME)
            self.assertEqual(focused(), "tokens")
            self.assertEqual(len(self.find_all("#tree [tabindex='0']")), 1)

        def test_shows_times_and_bytes_as_bars(self):
            self.assertRegex(self.find("#stage .bars").text, r"forward\n[\d.]+ .?s, [\d.]+% of the step")

        def test_enlarges_a_value(self):
            self.run_js("go({ moment: 4 })")
            self.find("#stage .card .title").click()
            dialog = self.find("#inspector")
            self.assertTrue(dialog.is_displayed())
            self.assertEqual(len(self.find_all("#inspector canvas")), 2)
            self.assertIn("std", dialog.text)
            self.find("#inspector .choices button").click()
            self.assertEqual(len(self.find_all("#inspector table")), 2)
            rows, columns = self.find_all("#inspector .choices select")[:2]
            columns.send_keys("token")  # replaces the rows' axis; the rows then take the columns' previous one
            canvas = self.find("#inspector canvas")
            place, number = place_of(self.hover(canvas, canvas.size["width"] - 3, 3)[0])
            node = self.run_js("return currentMoment().node.inputs[0]")
            self.assertEqual(place, (0, 31, 0))
            self.assertEqual(np.float32(number), decode(self.data["steps"][0]["nodes"][node]["value"])[place])
            self.press(Keys.ESCAPE)
            self.assertFalse(dialog.is_displayed())
            self.assertEqual(self.browser.switch_to.active_element.get_attribute("class"), "title")

        def test_copies_the_expression_of_an_array(self):
            nodes = self.data["steps"][0]["nodes"]
            named = next(n for n, node in enumerate(nodes) if node["inputs"] and "find" in nodes[node["inputs"][0]])
            self.run_js("go({ moment: currentStep().moments.findIndex(({ node }) => node.number === arguments[0]) })", named)
            self.run_js("Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { writeText:"
                        "(text) => (window.refuses ? Promise.reject() : Promise.resolve((window.copied = text))) } })")
            button = self.find("#stage .card.value .copy")
            expression = nodes[nodes[named]["inputs"][0]]["find"] + ".value()"
            self.assertEqual(button.get_attribute("title"), "Copy " + expression)
            button.click()
            self.assertEqual(button.text, "copied")
            self.assertEqual(self.run_js("return window.copied"), expression)
            self.run_js("window.refuses = true")
            button.click()
            self.assertEqual(button.text, expression)

    class Surroundings(Base):
        """Names from users, light and dark modes, printing."""

        def test_malicious_names_are_shown_as_text(self):
            self.open_sample("evil")
            for view in ("story", "attention", "health"):
                self.run_js("go({ view: arguments[0] })", view)
                self.assertIn(EVIL, self.find("body").text)
            self.run_js("go({ view: 'story', moment: 8 })")
            self.assertIn(EVIL, self.find("#trouble").text)
            self.run_js("inspect(currentStep().nodes[0])")
            self.assertEqual(self.find_all("#inspector .pair h3")[2].text, EVIL)
            self.assertIn(EVIL, self.find("#inspector .apart").text)
            self.assertEqual(self.run_js("return document.querySelectorAll('img, b, main script').length"), 0)
            self.assertEqual(self.browser.title, EVIL)
            self.assertEqual(self.find("h1").text, EVIL)

        def test_no_script_parses_text_as_html(self):
            from assemble import folder

            for file in folder.glob("*.js"):
                text = file.read_text()
                self.assertIsNone(
                    re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", text), file.name
                )
                self.assertLess(text.count("\n"), 400, file.name)
            self.assertEqual(
                {file.name for file in folder.glob("*.js")}, set((folder / "scripts.txt").read_text().split())
            )

        def test_light_and_dark(self):
            background = "return getComputedStyle(document.documentElement).backgroundColor"
            drawing = "return document.querySelector('#stage canvas').toDataURL()"
            self.open_sample("classifier", dark=True)
            dark, dark_map = self.run_js(background), self.run_js(drawing)
            self.find("#theme").click()
            light, light_map = self.run_js(background), self.run_js(drawing)
            self.assertEqual((dark, light), ("rgb(22, 24, 28)", "rgb(255, 255, 255)"))
            self.assertNotEqual(dark_map, light_map)
            self.open_sample("classifier")
            self.assertEqual(self.run_js(background), light)

        def test_prints_heat_maps_at_a_higher_resolution(self):
            self.open_sample("classifier", dark=True)
            width = "return document.querySelector('#stage canvas').width"
            before = self.run_js(width)
            self.run_js("window.dispatchEvent(new Event('beforeprint'))")
            self.assertGreaterEqual(self.run_js(width), 4 * before - 4)
            self.run_js("window.dispatchEvent(new Event('afterprint'))")
            self.assertEqual(self.run_js(width), before)

        def test_every_control_has_a_name(self):
            self.open_sample("gpt")
            script = """return [...document.querySelectorAll("button, input, select, canvas, [role=button]")]
                .filter((control) => control.offsetParent !== null)
                .filter((control) => !control.getAttribute("aria-label") && !control.textContent.trim())
                .filter((control) => !control.labels?.length)
                .map((control) => control.outerHTML)"""
            for view in ("story", "attention", "health"):
                self.run_js("go({ view: arguments[0] })", view)
                self.assertEqual(self.run_js(script), [])

    return [Story, Layers, Surroundings]
