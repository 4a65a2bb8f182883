"""Rules that make one-line faults in C++ sources, and random draws of them.

The tokenizer relies on clang-format's layout: binary operators have spaces on both sides, while pointers, references
and template brackets do not.
"""
import dataclasses
import difflib
import functools
import hashlib
import itertools
import random
import re

FOLDERS = ("engine", "layers", "optim")
SUFFIXES = {".cpp", ".hpp", ".ipp"}
NOT_BUILT = {"optim/mpi/no_mpi.cpp"}  # replaces optim/mpi/world.cpp in builds without MPI

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*)
      | (?P<text>(?:u8|L)?R"(?P<mark>[^(]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<number>\.?\d(?:[eEpP][+-]|['.\w])*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<sign>::|->|\.\.\.|<<=|>>=|<=>|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|\|=|&=|\^=|\+\+|--|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)

# Words that begin no expression statement.
KEYWORDS = set("""alignas auto case catch class const constexpr default delete do else enum explicit extern for friend
    goto if inline namespace operator private protected public requires return static static_assert struct switch
    template throw try typedef typename union using virtual volatile while""".split())


def both_ways(words):
    """From each word of a pair to the other one."""
    first, second = words.split()[::2], words.split()[1::2]
    return dict(zip(first + second, second + first))


SWAPPED = both_ways("+ - * / < > <= >= == != && ||")
BOUNDS = both_ways("< <= > >=")
OPPOSITES = both_ways("min max begin end first last front back rows columns any_of all_of floor ceil true false "
                      "lower_bound upper_bound before after min_element max_element") | {"double": "float"}


@dataclasses.dataclass(frozen=True)
class Fault:
    """Replaces a file's text from start to end."""
    file: str
    text: str
    rule: str
    start: int
    end: int
    new: str

    @property
    def changed_text(self):
        return self.text[:self.start] + self.new + self.text[self.end:]

    @property
    def line(self):
        return self.text.count("\n", 0, self.start) + 1

    @functools.cached_property
    def hunk(self):
        return list(difflib.unified_diff(self.text.splitlines(), self.changed_text.splitlines(), n=2, lineterm=""))[2:]

    @functools.cached_property
    def hash(self):
        """Of the file, the change and the neighboring lines, without their numbers."""
        lines = [" ".join(line.split()) for line in self.hunk if not line.startswith("@@")]
        return hashlib.sha256("\n".join([self.file, *lines]).encode()).hexdigest()[:12]

    @property
    def diff(self):
        return "\n".join([f"{self.file}:{self.line}: {self.rule} [{self.hash}]", *self.hunk, ""])


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int
    match: int = -1  # index of the matching bracket
    parent: int = -1  # index of the enclosing opening bracket
    is_body: bool = False  # True for the opening brace of a function's body, or of a block in it


class Source:
    """A file's tokens without comments and preprocessor lines, with brackets matched."""

    def __init__(self, text):
        self.text = text
        self.tokens = [Token(m.lastgroup if m.lastgroup != "mark" else "text", m[0], m.start(), m.end())
                       for m in TOKEN.finditer(text) if m.lastgroup != "skip"]
        self.match_brackets()
        self.frozen = self.find_frozen()

    def spaced(self, i):
        """True for a token with white space on both sides."""
        return (0 < i < len(self.tokens) - 1 and self.tokens[i - 1].end < self.tokens[i].start and
                self.tokens[i].end < self.tokens[i + 1].start)

    def match_brackets(self):
        stack = []
        for i, token in enumerate(self.tokens):
            # Unspaced angle brackets enclose a template's arguments.
            is_angle = token.text in "<>" and (not self.spaced(i) or self.word(i - 1) == "template")
            if token.text in (")", "]", "}"):
                while stack and self.word(stack[-1]) == "<":  # was no bracket
                    stack.pop()
            pair = self.word(stack[-1]) + token.text if stack and (is_angle or token.text != ">") else ""
            if pair in ("()", "[]", "{}", "<>"):
                token.match = stack.pop()
                self.tokens[token.match].match = i
            token.parent = stack[-1] if stack else -1
            if token.text in ("(", "[", "{") or is_angle and token.text == "<":
                token.is_body = token.text == "{" and self.opens_body(i)
                stack.append(i)

    def word(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def opens_body(self, brace):
        """True for a brace after a parameter list, a condition or a keyword, but not after a class or namespace."""
        parent, words, i = self.tokens[brace].parent, [], brace - 1
        while i > parent and self.word(i) not in (";", "{", "}"):
            words.append(self.word(i))
            i = (self.tokens[i].match if 0 <= self.tokens[i].match < i else i) - 1
        if {"class", "struct", "namespace", "enum", "union"} & set(words):
            return False
        is_block = self.word(brace - 1) in (";", "{", "}") and parent >= 0 and self.tokens[parent].is_body
        ends_head = self.word(brace - 1) in (")", "else", "do", "try", "const", "noexcept", "override", "mutable")
        return is_block or ends_head or "->" in words or {":", ")"} <= set(words)

    def find_frozen(self):
        """Tokens of template parameter lists, explicit instantiations and declarations that compute nothing."""
        frozen = set()
        for i, token in enumerate(self.tokens):
            if token.text == "template" and self.tokens[i + 1].match > i:
                frozen.update(range(i, self.tokens[i + 1].match + 1))
            elif token.text in ("static_assert", "using", "concept", "requires", "template"):
                frozen.update(itertools.takewhile(lambda j: self.word(j) not in (";", "{"), range(i, len(self.tokens))))
            elif token.text == "operator":
                frozen.add(i + 1)
        return frozen

    def parts(self, first, last, separator):
        """The ranges of tokens between separators outside brackets, from first up to last."""
        found, begin, i = [], first, first
        while i < last:
            if self.tokens[i].match > i:
                i = self.tokens[i].match
            elif self.word(i) == separator:
                found.append((begin, i))
                begin = i + 1
            i += 1
        return found + [(begin, last)]

    def span(self, part):
        """The text positions of a range of tokens."""
        return self.tokens[part[0]].start, self.tokens[part[1] - 1].end

    def declares(self, part):
        """Whether the tokens begin or are a declaration: a type and a name, or a bare type."""
        first, last = part
        for i in range(first, last):
            if self.word(i) in ("=", "(", "{", "["):
                break
            if i > first and self.tokens[i].kind == "word" and (
                    self.tokens[i - 1].kind == "word" or
                    self.word(i - 1) in (">", "&", "*", "&&") and not self.spaced(i - 1) and i - 1 > first):
                return True
        return self.word(last - 1) in ("&", "*", "&&", "...")

    def is_named(self, i):
        """True for a word that a declaration names, and for a parameter's type, which other declarations repeat."""
        if self.word(i) == "double":
            return self.word(self.tokens[i].parent) == "(" and self.word(i + 1) != "("
        is_type = self.tokens[i - 1].kind == "word" or self.word(i - 1) in ("&", "*", ">") and not self.spaced(i - 1)
        return is_type and self.word(i - 1) not in KEYWORDS

    def are_independent(self, *statements):
        """True for changes of objects that the other statement does not mention, and for two checks."""
        texts = [self.text[slice(*self.span(statement))] for statement in statements]
        if all(re.match(r"(detail::|\w+\.)?(require|check|expect)", text) for text in texts):
            return True
        changed = [re.match(r"(?:\+\+)?(\S+)(?: [-+*/|]?= |$)|([\w.\]>-]+)(?:\.|->)\w+\(", text) for text in texts]
        return all(match and not re.search(rf"\b{re.escape(match[1] or match[2])}(?!\w)", other)
                   for match, other in zip(changed, reversed(texts)))

    def statements(self):
        """Expression statements and jumps as (first, end, whether nothing controls it), without their semicolon."""
        begins = {}  # by the opening brace of the block: where its next statement begins
        for i, token in enumerate(self.tokens):
            if token.is_body:
                begins[i] = i + 1
            if token.parent not in begins:
                continue
            if token.text == ";":
                first, is_free = begins[token.parent], True
                while first < i and self.word(first) in ("if", "for", "while", "else", "constexpr", "("):
                    is_free = False
                    first = self.tokens[first].match + 1 if self.word(first) == "(" else first + 1
                jump = self.word(first) in ("break", "continue", "return") and i == first + 1
                if first < i and (jump or self.word(first) not in KEYWORDS and not self.declares((first, i))):
                    yield first, i, is_free
            ends_block = token.text == "}" and self.tokens[token.match].is_body
            if token.text == ";" or ends_block and self.word(i + 1) not in (";", ",", "("):
                begins[token.parent] = i + 1


def token_faults(source):
    for i, token in enumerate(source.tokens):
        part = (i, i + 1)
        if token.text in SWAPPED and source.spaced(i) and token.match < 0:
            yield "operator", part, SWAPPED[token.text]
            if token.text in BOUNDS:
                yield "bound", part, BOUNDS[token.text]
        if token.kind == "number":
            yield "constant", part, f"({token.text} + 1)"
            if token.text != "0":
                yield "constant", part, f"({token.text} - 1)"


def argument_faults(source):
    for i, token in enumerate(source.tokens):
        called = token.text == "(" and i > 0 and (source.tokens[i - 1].kind == "word" or source.word(i - 1) == ">")
        listed = token.text == "{" and not token.is_body
        if token.match < i or not (called or listed) or source.word(i - 1) in KEYWORDS or len(
                source.parts(i + 1, token.match, ";")) > 1:
            continue
        arguments = source.parts(i + 1, token.match, ",")
        for left, right in zip(arguments, arguments[1:]):
            if any(first == last or source.declares((first, last)) or source.word(first) == "[" or
                   source.tokens[first].kind == "text" for first, last in (left, right)):
                continue
            (a, b), (c, d) = source.span(left), source.span(right)
            if source.text[a:b] != source.text[c:d]:
                yield "arguments", (left[0], right[1]), source.text[c:d] + source.text[b:c] + source.text[a:b]


def condition_faults(source):
    for i, token in enumerate(source.tokens):
        if token.text not in ("if", "while") or source.word(i + 1) != "(":
            continue
        condition = source.parts(i + 2, source.tokens[i + 1].match, ";")[-1]
        if len(source.parts(*condition, "=")) == 1:  # declares nothing
            if token.text == "if":
                yield "dropped condition", condition, "true"
            yield "dropped condition", condition, "false"
            yield "negation", condition, f"!({source.text[slice(*source.span(condition))]})"


def statement_faults(source):
    previous = None
    for first, end, is_free in source.statements():
        statement = (first, end)
        yield "dropped statement", statement, ""
        if previous and is_free and previous[1] + 1 == first and not source.are_independent(previous, statement):
            (a, b), (c, d) = source.span(previous), source.span(statement)
            yield "order", (previous[0], end), source.text[c:d] + source.text[b:c] + source.text[a:b]
        previous = statement if is_free else None
        assignment = source.parts(*statement, "=")
        if len(assignment) == 2:
            yield "assignment", (assignment[0][1], assignment[0][1] + 1), "+="
        for i in range(*statement):
            if source.word(i) in ("+=", "-=", "*=", "/="):
                yield "assignment", (i, i + 1), "="


def opposite_faults(source):
    for i, token in enumerate(source.tokens):
        if token.text in OPPOSITES and not source.is_named(i):
            yield "opposite", (i, i + 1), OPPOSITES[token.text]


RULES = (token_faults, argument_faults, condition_faults, statement_faults, opposite_faults)


def all_faults(root):
    """Every fault of the sources, by rule."""
    found = {}
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SUFFIXES):
        source = Source(path.read_text())
        for rule, part, new in itertools.chain.from_iterable(rule(source) for rule in RULES):
            if not source.frozen.intersection(range(*part)):
                fault = Fault(str(path.relative_to(root)), source.text, rule, *source.span(part), new)
                found.setdefault(rule, []).append(fault)
    return found


def draw(root, seed, count):
    """Random faults: each rule is equally likely, and so are the sites of a rule. Few change with an edit elsewhere."""
    generator, drawn, sites = random.Random(seed), {}, all_faults(root)

    def place(fault):
        text = fault.text[max(fault.start - 80, 0):fault.end + 80]
        return hashlib.sha256(f"{seed} {fault.file} {text} {fault.new}".encode()).digest()

    for faults in sites.values():
        faults.sort(key=place)
    while len(drawn) < count and any(sites.values()):
        fault = sites[generator.choice([rule for rule in sites if sites[rule]])].pop()
        if fault.file not in NOT_BUILT:
            drawn.setdefault(fault.hash, fault)
    return list(drawn.values())
