"""Draws the pictures of the documentation: pictures.py [--check] docs. Those of the benchmark are made
from its table, docs/gpu/benchmark.csv."""
import argparse
import csv
import pathlib
import sys

import charts
from svg import BLUE, GREEN, GREY, INK, ORANGE, VIOLET, Picture


def tiling():
    """A sequence of nine blocks, the last one short, in three segments; the three passes over it."""
    p = Picture(880, 560)
    left, block, blocks = 160, 72, [1] * 8 + [0.5]
    edges = [left + block * sum(blocks[:i]) for i in range(10)]
    cuts = [edges[0], edges[3], edges[6], edges[9]]
    middles = [(a + b) / 2 for a, b in zip(cuts, cuts[1:])]
    colours = [BLUE, GREEN, VIOLET]

    def label(y, name, *lines):
        p.text(20, y, name, size=15, anchor='start', weight='bold')
        for i, words in enumerate(lines):
            p.text(20, y + 19 + 16 * i, words, size=12, anchor='start')

    label(48, 'tokens', 'blocks of 256,', 'segments of blocks')
    for i, width in enumerate(blocks):
        p.box(edges[i], 40, block * width, 34, fill=colours[i // 3], opacity=0.35, radius=0)
    for i, middle in enumerate(middles):
        p.text(middle, 30, f'segment {i}', fill=INK)

    label(130, 'STATE', 'each segment', 'alone, in parallel')
    states = [(middle, 128) for middle in middles]
    for (x, y), colour in zip(states, colours):
        p.arrow((x, 76), (x, y - 2))
        p.box(x - 20, y, 40, 40, fill=colour, opacity=0.35)
        p.text(x, y + 25, 'KV', weight='bold')

    label(224, 'SCAN', 'carries the state', 'across segments')
    y = 222
    before = [cuts[0] - 2, cuts[1] - 2, cuts[2] - 2, cuts[3] + 20]
    names = ['P0', 'P1', 'P2', 'final']
    for i, (x, name) in enumerate(zip(before, names)):
        p.box(x - 4, y, 48, 40, fill=ORANGE, opacity=0.3 if i else 0.12)
        p.text(x + 20, y + 25, name, weight='bold')
        if i:
            p.arrow((before[i - 1] + 45, y + 20), (x - 6, y + 20))
            middle = (before[i - 1] + 45 + x) / 2
            p.text(middle, y + 38, 'e^(-s L)', size=12)
            p.arrow((states[i - 1][0], 169), (states[i - 1][0], y + 18))
    p.text(before[0] + 20, y - 8, 'initial state', size=12)

    label(330, 'OUTPUT', 'each segment from', 'the state before it;', 'block by block')
    for i, width in enumerate(blocks):
        x, w, colour = edges[i], block * width, colours[i // 3]
        p.box(x, 330, w, block * width, fill='#ffffff', radius=0)
        p.polygon([(x, 330), (x, 330 + w), (x + w, 330 + w)], fill=colour, opacity=0.35)
    for i in range(3):
        x = before[i] + 20
        p.arrow((x, y + 41), (x, 328))
    for i in range(8):
        if i % 3 != 2:
            p.arrow((edges[i + 1] - 12, 411), (edges[i + 1] + 14, 411))
    p.text((cuts[0] + cuts[3]) / 2, 432, 'the state stays on chip from block to block', size=12)

    p.line(20, 448, 860, 448)
    p.text(20, 474, 'within a block', size=15, anchor='start', weight='bold')
    p.box(left, 462, 74, 74, fill='#ffffff', radius=0)
    p.polygon([(left, 462), (left, 536), (left + 74, 536)], fill=BLUE, opacity=0.35)
    p.text(left + 50, 488, 'masked', size=11, fill='#7b8794')
    p.code(left + 92, 484, 'o_t  = sum over j <= t in the block of  e^(-s (t - j)) (q_t . k_j) v_j', anchor='start')
    p.code(left + 92, 508, '     + e^(-s (t + 1)) q_t P', anchor='start')
    p.text(left + 320, 508, 'P: the state before the block; t counts from 0 in it', size=12, anchor='start')
    p.code(left + 92, 532, 'P   <- e^(-s L) P + sum over j of  e^(-s (L - 1 - j)) k_j v_j^T', anchor='start')
    return p


def packed():
    """One call: a new prompt, two decodes, a prompt's next chunk and a padding row, on six slots."""
    p = Picture(880, 430)
    rows = [('new prompt', 7, 4, 0, BLUE), ('decode', 1, 0, 1, GREEN), ('decode', 1, 2, 1, GREEN),
            ('next chunk', 4, 5, 1, VIOLET), ('padding', 1, -1, 0, GREY)]
    left, width, top = 150, 48, 60
    p.text(20, top + 22, 'q, k, v, o', size=15, anchor='start', weight='bold')
    p.code(20, top + 40, '[tokens, h, d]', size=12, anchor='start')
    starts, centres = [0], []
    for name, count, slot, initial, colour in rows:
        x = left + width * starts[-1]
        for i in range(count):
            p.box(x + width * i, top, width, 36, fill=colour, opacity=0.35, radius=0)
        centres.append(x + width * count / 2)
        starts.append(starts[-1] + count)
        if count > 1:
            p.text(centres[-1], top - 12, name, weight='bold')
    p.text((centres[1] + centres[2]) / 2, top - 12, 'decodes', weight='bold')
    p.text(centres[4], top - 12, 'padding', weight='bold')

    arrays = [('cu_seqlens', top + 62), ('slot_idx', top + 96), ('has_initial', top + 128)]
    for name, y in arrays:
        p.code(20, y, name, anchor='start')
    for start in starts:
        x = left + width * start
        p.line(x, top + 38, x, top + 48)
        p.code(x, top + 62, str(start))
    for (name, count, slot, initial, colour), x in zip(rows, centres):
        p.box(x - 18, top + 80, 36, 24, fill=colour, opacity=0.25)
        p.code(x, top + 97, str(slot))
        p.code(x, top + 128, '-' if slot < 0 else str(initial))

    y, slots, slot_width = 300, 6, 108
    p.text(20, y + 24, 'state pool', size=15, anchor='start', weight='bold')
    p.code(20, y + 42, '[slots, h, d, e]', size=12, anchor='start')
    owner = {row[2]: row for row in rows if row[2] >= 0}
    for slot in range(slots):
        x = left + slot_width * slot
        row = owner.get(slot)
        p.box(x, y, slot_width - 12, 56, fill=row[4] if row else '#ffffff', opacity=0.35,
              dash='' if row else '4 3')
        p.code(x + slot_width / 2 - 6, y + 24, f'slot {slot}')
        p.text(x + slot_width / 2 - 6, y + 44, 'not touched' if not row else 'read, written' if row[3]
               else 'written only', size=11)
    for (name, count, slot, initial, colour), x in zip(rows, centres):
        if slot >= 0:
            target = left + slot_width * slot + slot_width / 2 - 6
            p.arrow((x, top + 136), (x, 224), (target, 274), (target, y - 3))
    p.text(centres[4], top + 152, 'output zero,', size=11)
    p.text(centres[4], top + 166, 'no state', size=11)
    p.text(left, 386, 'A sequence of one token is a decode; longer ones are prefills. One call serves them all.',
           anchor='start')
    p.text(left, 406, 'has_initial 0: the slot starts from zero whatever a former owner left in it, NaN included.',
           anchor='start')
    return p


def main():
    parser = argparse.ArgumentParser(description='draws the pictures of the documentation')
    parser.add_argument('--check', action='store_true', help='only compare with what is there')
    parser.add_argument('folder', type=pathlib.Path, help='docs')
    options = parser.parse_args()
    with open(options.folder / 'gpu' / 'benchmark.csv', newline='', encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    pictures = {'tiling.svg': tiling(), 'packed.svg': packed(), 'gpu/roofline.svg': charts.roofline(rows),
                'gpu/growth.svg': charts.growth(rows)}
    for name, picture in pictures.items():
        path, text = options.folder / name, picture.svg()
        if not options.check:
            path.write_text(text, encoding='utf-8')
        elif not path.exists() or path.read_text(encoding='utf-8') != text:
            sys.exit(f'{path} is not what tools/pictures.py draws: run it with {options.folder}')


if __name__ == '__main__':
    main()
