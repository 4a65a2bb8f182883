"""Tests the page's attention view: heads next to each other, their tokens, and the values' axes."""

import numpy as np
from selenium.webdriver import ActionChains, Keys

from decode import decode, place_of
from operations import Operations
from tape import Tape

SENTENCE = ["the", "(padding)", "bank", "extraordinarily", "steep", "river", "of", "incomprehensibilities"]


def attended(heads, tokens, layers=1):
    """A step of self-attention, in as many layers at the model's root."""
    random = np.random.default_rng(12)
    tape = Tape("attention")
    f = Operations(tape)
    x = tape.parameter("x", random.normal(size=(1, len(tokens), 4 * heads)))
    for _ in range(layers):
        x = f.attention(x, x, x, heads, tokens=[tokens])
    tape.backward(f.sum(f.mul(x, x)))
    return tape.step()


def cases(Base):
    """The test cases, derived from the class with the browser."""

    class Heads(Base):
        def open_heads(self, *arguments, width=1400, **options):
            self.open_step(attended(*arguments, **options), width=width)
            self.run_js("go({ view: 'attention' })")

        def boxes(self, selector):
            """Left, top, right and bottom of the displayed elements."""
            script = """
                const boxes = [...document.querySelectorAll(arguments[0])].map((shown) => shown.getBoundingClientRect());
                return boxes.map(({ left, top, right, bottom }) => [left, top, right, bottom]);"""
            return np.array(self.run_js(script, selector))

        def test_heads_fill_the_width(self):
            for heads in (4, 8):
                for tokens in (list("possibility"), SENTENCE):
                    with self.subTest(heads=heads, tokens=tokens[0]):
                        self.open_heads(heads, tokens)
                        area, figures = self.boxes("#attention .heads")[0], self.boxes("#attention .head")
                        self.assertLessEqual(len(np.unique(figures[:, 1])), 2 if heads == 4 else 3)
                        self.assertGreater(figures[:, 2].max() - area[0], 0.85 * (area[2] - area[0]))
                        maps = self.boxes("#attention .head canvas")
                        self.assertGreater(
                            (maps[:, 2] - maps[:, 0]).sum() / heads, 0.8 * (figures[0, 2] - figures[0, 0])
                        )

        def test_heads_fit_a_narrow_screen(self):
            self.open_heads(8, SENTENCE, width=420)
            self.assertLessEqual(self.boxes("#attention .head canvas, #attention svg")[:, 2].max(), 420)
            self.assertLessEqual(self.run_js("return document.documentElement.scrollWidth"), 420)

        def test_heads_follow_the_window(self):
            self.open_heads(8, SENTENCE)
            self.screen(420, 900)
            self.wait_for(lambda: self.boxes("#attention .head canvas")[:, 2].max() <= 420)

        def test_long_tokens_are_shortened_with_the_full_text_in_tooltips(self):
            self.open_heads(8, SENTENCE)
            canvas = self.find("#attention .head canvas")
            last = canvas.size["height"] - 5
            self.assertEqual(self.hover(canvas, 10, last), ["incomprehensibilities"])
            texts = self.find_all("#attention svg text")
            self.assertTrue(self.run_js("return arguments[0].firstChild.textContent", texts[7]).endswith("…"))
            self.assertEqual(texts[7].find_element("css selector", "title").get_attribute("textContent"), SENTENCE[7])
            self.assertEqual(self.run_js("return arguments[0].firstChild.textContent", texts[1]), "(padding)")
            self.assertGreaterEqual(min(self.run_js("return arguments[0].getBBox().x", text) for text in texts), 0)

        def open_rows(self, count):
            """Shows a matrix of 100 columns with cells only 2 pixels wide. Returns its canvas."""
            tape = Tape("rows")
            x = tape.parameter("x", np.zeros((count, 100)))
            Operations(tape).relu(x.named("x", axes=[["Ä"] * count, None], axis_names=["row", ""]))
            self.open_step(tape.step())
            return self.find("#stage canvas")

        def test_rows_are_high_enough_for_their_labels(self):
            for count, least in ((2, 16), (15, 11)):
                self.assertGreaterEqual(self.open_rows(count).size["height"], count * least)

        def test_no_label_is_cut_off(self):
            """Above the first label, next to a row of 2 pixels, the canvas is empty."""
            canvas = self.open_rows(60)
            script = """
                const { data } = arguments[0].getContext("2d").getImageData(0, 0, 8, 1);
                return data.every((x) => x === 0);"""
            self.assertTrue(self.run_js(script, canvas))

        def test_names_of_attention_at_the_root(self):
            self.open_heads(2, list("abc"))
            names = lambda: [name.text for name in self.find_all("#attention .choice:first-child option")]
            self.assertEqual(names(), ["attention"])
            self.open_heads(2, list("abc"), layers=2)
            self.assertEqual(names(), ["multi_head_attention #1", "multi_head_attention #2"])

    class Tokens(Base):
        """gpt: hidden keys, weights under the pointer, and each token's attention."""

        def test_shows_heads_masks_and_tokens(self):
            data = self.open_sample("gpt")
            self.find("#tab-attention").click()
            self.assertEqual(len(self.find_all("#attention .head")), 4)
            node = next(node for node in data["steps"][0]["nodes"] if "attention" in node)
            canvas = self.find("#attention .head canvas")
            hidden = self.hover(canvas, canvas.size["width"] - 4, 22)
            self.assertEqual(hidden[-1], "hidden by the mask")
            lines = self.hover(canvas, 20, canvas.size["height"] - 12)
            place, number = place_of(lines[0])
            self.assertEqual(np.float32(number), decode(node["attention"]["weights"])[place])
            tokens = self.find_all("#attention svg text")
            ActionChains(self.browser).move_to_element(tokens[3]).perform()
            self.assertIn("b attends most to", self.find("#attention .said").text)
            strengths = (
                "return [...document.querySelectorAll('#attention line:not(.off)')].map((l) => +l.style.strokeOpacity)"
            )
            self.assertEqual(max(self.run_js(strengths)), 1)  # its strongest line, even if weak next to others'
            self.run_js("arguments[0].focus()", tokens[0])
            self.press(Keys.ARROW_DOWN)
            self.assertIn("o attends most to", self.find("#announcement").get_attribute("textContent"))
            self.press(Keys.ARROW_RIGHT)
            self.assertIn("o is attended to most by", self.find("#announcement").get_attribute("textContent"))

    class Axes(Base):
        """Values without axes inherit those of their inputs or results."""

        def choices_at(self, operation):
            script = """
                const node = currentStep().operations.find(({ operation }) => operation === arguments[0]);
                go({ moment: node.forwardMoment.number });
                const labels = [...document.querySelectorAll("#stage .choices label")];
                return labels.map((label) => label.firstChild.textContent);"""
            return self.run_js(script, operation)

        def open_attention(self, *leading):
            """softmax(q kᵀ) v of named queries, keys, values and weights; the values in between have no name."""
            tape = Tape("axes")
            f = Operations(tape)
            names = [*["batch", "head"][: len(leading)], "token"]
            draw = np.random.default_rng(13).normal
            q, k, v = (
                tape.parameter(name, draw(size=(*leading, 3, 2))).named(name, axis_names=[*names, ""]) for name in "qkv"
            )
            weights = f.softmax(f.matmul(q, f.transpose(k))).named("P", axis_names=[*names[:-1], "query", "key"])
            f.relu(f.matmul(weights, v))
            self.open_step(tape.step())

        def test_products_have_the_axes_of_their_factors(self):
            for leading, names in (((2,), ["batch"]), ((2, 2), ["batch", "head"])):
                self.open_attention(*leading)
                for operation in ("transpose", "matmul", "softmax", "relu"):
                    self.assertEqual(self.choices_at(operation), names, operation)

        def test_a_layer_keeps_all_axes_but_the_last(self):
            tape = Tape("axes")
            f = Operations(tape)
            x = tape.parameter("x", np.ones((2, 3, 4))).named("x", axis_names=["batch", "token", ""])
            w, b = tape.parameter("w", np.ones((4, 4))), tape.parameter("b", np.ones(4))
            y = f.linear(x, w, b)
            f.relu(f.attention(y, y, y, 2))
            self.open_step(tape.step())
            for operation in ("linear", "multi_head_attention", "relu"):
                self.assertEqual(self.choices_at(operation), ["batch"], operation)

    return [Heads, Tokens, Axes]
