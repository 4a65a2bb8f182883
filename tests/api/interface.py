"""Reads the public names from Doxygen's XML."""

import dataclasses
import pathlib
import re
import xml.etree.ElementTree as ElementTree

Element = ElementTree.Element


@dataclasses.dataclass
class Name:
    kind: str  # class, struct, function, variable, typedef, enum, enumvalue or define
    name: str  # with namespaces and classes
    signature: str  # types and defaults of parameters, and the result; or type and value
    parameters: list[str]  # their names
    brief: str  # the first sentence of the comment
    comment: str  # the whole comment
    place: tuple[str, int]  # header and line
    url: str
    group: str = ""
    member_of: str = ""  # the class of a member, or the enumeration of a value

    @property
    def short(self) -> str:
        return self.name.removeprefix("tapegrad::")

    @property
    def entry(self) -> str:
        return self.name + self.signature


def text_of(element: Element | None) -> str:
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def code_of(element: Element | None) -> str:
    """A type or an expression, with the sources' spacing and without constexpr."""
    code = re.sub(r"\bconstexpr\b ?", "", text_of(element))
    code = re.sub(r"\s+([&*>])", r"\1", re.sub(r"([<(])\s+", r"\1", code))
    return re.sub(r"([&*])(?=\w)", r"\1 ", code)


def comment_of(element: Element) -> str:
    parts = [element.find(tag) for tag in ("briefdescription", "detaileddescription")]
    return "\n".join("".join(part.itertext()) for part in parts if part is not None)


def place_of(element: Element) -> tuple[str, int]:
    location = element.find("location")
    return location.get("file"), int(location.get("line"))


def signature_of(member: Element) -> str:
    if member.get("kind") == "define":
        return "(...)" if member.find("param") is not None else ""
    returned = code_of(member.find("type"))
    if member.get("kind") not in ("function", "friend"):
        value = code_of(member.find("initializer"))
        return (f": {returned}" if returned else "") + (f" {value}" if value else "")
    parameters = []
    for parameter in member.findall("param"):
        default = code_of(parameter.find("defval"))
        parameters.append(code_of(parameter.find("type")) + (f" = {default}" if default else ""))
    const = " const" if member.get("const") == "yes" else ""
    return f"({', '.join(parameters)}){const}" + (f" -> {returned}" if returned else "")


def names_of_member(member: Element) -> list[Name]:
    name = member.findtext("qualifiedname") or member.findtext("name")
    page, _, anchor = member.get("id").rpartition("_1")
    url = f"{page}.html#{anchor}"
    parameters = [parameter.findtext("declname", "") for parameter in member.findall("param")]
    found = [Name(member.get("kind"), name, signature_of(member), parameters, text_of(member.find("briefdescription")),
                  comment_of(member), place_of(member), url)]
    for value in member.findall("enumvalue"):
        brief = text_of(value.find("briefdescription"))
        found.append(Name("enumvalue", f"{name}::{value.findtext('name')}", "", [], brief, comment_of(value),
                          place_of(member), url, member_of=name))
    return found


def names_in(compound: Element, xml: pathlib.Path) -> list[Name]:
    """Public members, and nested classes with theirs."""
    found = []
    for member in compound.iter("memberdef"):
        if member.get("prot") == "public" and member.findtext("type") != "class":  # a friend
            found += names_of_member(member)
    for inner in compound.findall("innerclass"):
        if inner.get("prot") == "public":
            found += names_of_class(inner.get("refid"), xml)
    return found


def names_of_class(refid: str, xml: pathlib.Path) -> list[Name]:
    compound = ElementTree.parse(xml / f"{refid}.xml").getroot().find("compounddef")
    bases = ", ".join(code_of(base) for base in compound.findall("basecompoundref"))
    own = Name(compound.get("kind"), compound.findtext("compoundname"), f" : {bases}" if bases else "", [],
               text_of(compound.find("briefdescription")), comment_of(compound), place_of(compound), f"{refid}.html")
    members = names_in(compound, xml)
    for member in members:
        member.member_of = member.member_of or own.name
    return [own, *members]


def read(xml: pathlib.Path) -> list[Name]:
    found = []
    for file in sorted(xml.glob("group__*.xml")):
        compound = ElementTree.parse(file).getroot().find("compounddef")
        names = names_in(compound, xml)
        for name in names:
            name.group = compound.findtext("compoundname")
        found += names
    return found
