"""Writes the API reference from the public headers: api_reference.py [--check] OUT HEADER...

The headers are the text. A comment before a declaration becomes prose, `---- title ----` a section,
and declarations stay C, with the comments inside them. --check compares with OUT instead.
"""
import argparse
import pathlib
import re
import sys

COMMENT = re.compile(r'/\*(.*?)\*/\s*', re.DOTALL)
SECTION = re.compile(r'/\* -{4} (.*?) -{4,} \*/')
PLUMBING = re.compile(r'#\s*(if|ifdef|ifndef|else|endif|include)\b')
NAMES = (
    re.compile(r'^typedef struct \w+ (\w+);', re.MULTILINE),
    re.compile(r'^\} (\w+);', re.MULTILINE),
    re.compile(r'^typedef .*\(\*(\w+)\)', re.MULTILINE),
    re.compile(r'^#define (LATTN_VERSION)', re.MULTILINE),
    re.compile(r'^(?!typedef| |#)[\w ]+ \*?\*?(lattn_\w+)\(', re.MULTILINE),
)


def prose(comment):
    """Markdown of a comment: paragraphs, lists, and indented blocks as they stand."""
    lines = [re.sub(r'^ ?\* ?', '', line).rstrip() for line in comment.strip().splitlines()]
    out = []
    for block in '\n'.join(lines).split('\n\n'):
        if re.match(r' +[^- ]', block):
            out.append(f'```\n{block.strip(chr(10))}\n```')
        else:
            block = re.sub(r'(?<!`)\b(lattn_\w+|LATTN_\w+|[a-z]+(?:_[a-z]+)+)\b(?!`)', r'`\1`', block)
            out.append(re.sub(r'(?<!`)\*', r'\\*', block))
    return '\n\n'.join(out)


def declaration(code):
    """A declaration without what only the compiler needs."""
    code = re.sub(r'LATTN_API ([^;]*;)', lambda m: m[1].replace('\n' + ' ' * len('LATTN_API '), '\n'), code)
    code = re.sub(r'^static inline (.*?\))\n\{.*?^\}', r'\1;', code, flags=re.MULTILINE | re.DOTALL)
    return code.strip()


def entries(section):
    """(names, prose, code) of each paragraph of a section."""
    for paragraph in re.split(r'\n\n(?=\S)', section.strip()):
        comment = COMMENT.match(paragraph)
        code = declaration(paragraph[comment.end():] if comment else paragraph)
        if code and not PLUMBING.match(code):
            names = list(dict.fromkeys(name for pattern in NAMES for name in pattern.findall(code)))
            yield names, prose(comment[1]) if comment else '', code


def reference(headers):
    out = ['# API reference\n\nMade from the headers by `tools/api_reference.py`: edit those.\n']
    for path in headers:
        text = path.read_text(encoding='utf-8')
        head = COMMENT.match(text)
        out.append(f'## <lattn/{path.name}>\n\n{prose(head[1])}\n'.replace('<', '&lt;', 1))
        pieces = SECTION.split(text[head.end():])
        titled = list(zip(pieces[1::2], pieces[2::2])) or [(None, pieces[0])]
        for title, section in titled:
            if title:
                out.append(f'## {title[0].upper()}{title[1:]}\n')
            for names, words, code in entries(section):
                if names:
                    out.append(f'### {", ".join(names)}\n')
                if words:
                    out.append(words + '\n')
                out.append(f'```c\n{code}\n```\n')
    return '\n'.join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--check', action='store_true')
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('headers', nargs='+', type=pathlib.Path)
    options = parser.parse_args()
    text = reference(options.headers)
    if not options.check:
        options.out.write_text(text, encoding='utf-8')
    elif options.out.read_text(encoding='utf-8') != text:
        sys.exit(f'{options.out} is not what the headers say: run tools/api_reference.py '
                 f'{options.out} {" ".join(map(str, options.headers))}')


main()
