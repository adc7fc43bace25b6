"""Charts of a benchmark of bench/peers.py: roofline() and growth(), from the rows of its CSV."""
import math

from svg import BLUE, GREEN, INK, LINE, ORANGE, VIOLET, Picture

STYLES = {'lattn': ('lattn', BLUE), 'source': ('vLLM (Triton)', ORANGE),
          'fla': ('flash-linear-attention', GREEN), 'kittens': ('ThunderKittens', VIOLET)}
CHUNK = 64  # tokens, for counting operations


class Axes:
    """A frame with logarithmic axes; grid lines at the powers of a base."""

    def __init__(self, picture, left, top, width, height, x_range, y_range):
        self.p, self.left, self.top, self.width, self.height = picture, left, top, width, height
        self.x_range, self.y_range = x_range, y_range
        picture.box(left, top, width, height, fill='#ffffff', line=LINE, radius=0)

    def x(self, value):
        low, high = self.x_range
        return self.left + self.width * math.log(value / low) / math.log(high / low)

    def y(self, value):
        low, high = self.y_range
        return self.top + self.height * (1 - math.log(value / low) / math.log(high / low))

    def ticks(self, xs, ys, write=str):
        for value in xs:
            self.p.line(self.x(value), self.top, self.x(value), self.top + self.height, fill='#e4e7eb')
            self.p.text(self.x(value), self.top + self.height + 17, write(value), size=12)
        for value in ys:
            self.p.line(self.left, self.y(value), self.left + self.width, self.y(value), fill='#e4e7eb')
            self.p.text(self.left - 8, self.y(value) + 4, write(value), size=12, anchor='end')

    def titles(self, title, x, y):
        self.p.text(self.left, self.top - 26, title, size=15, anchor='start', weight='bold')
        self.p.text(self.left, self.top - 9, y, size=12, anchor='start')
        self.p.text(self.left + self.width / 2, self.top + self.height + 36, x, size=12)

    def curve(self, points, colour, dash='', dots=True):
        path = [(self.x(x), self.y(y)) for x, y in points]
        self.p.curve(path, colour, dash)
        for x, y in path if dots else ():
            self.p.dot(x, y, colour)


def legend(picture, x, y, names):
    for name in names:
        words, colour = STYLES[name]
        picture.dot(x, y - 4, colour)
        picture.text(x + 10, y, words, size=12, anchor='start')
        x += 34 + 6.6 * len(words)


def faster_of_fla(rows):
    """With one row where flash-linear-attention has two functions."""
    best = {}
    for row in rows:
        row = dict(row, implementation=row['implementation'].partition(' ')[0])
        key = tuple(row[key] for key in ('part', 'op', 'b', 'h', 'n', 'd', 'dtype', 'precision', 'implementation'))
        if key not in best or float(row['ms']) < float(best[key]['ms']):
            best[key] = row
    return list(best.values())


def number(row, key):
    return float(row[key])


def moved(row):
    """Bytes of the floor."""
    b, h, n, d = (int(row[key]) for key in 'bhnd')
    tokens = 4 * b * h * n * d * (4 if row['dtype'] == 'f32' else 2)
    return tokens + (8 * b * h * d * d if row['op'] == 'decode' else 0)


def operations(row):
    b, h, n, d = (int(row[key]) for key in 'bhnd')
    return b * h * n * (4 * d * d + (4 * CHUNK * d if row['op'] == 'prefill' else 0))


def thousands(value):
    return f'{value // 1024}k' if value >= 1024 else f'{value:g}'


def names_in(rows):
    return [name for name in STYLES if any(row['implementation'] == name for row in rows)]


# ---- how near to what the device can do ----------------------------------------------------------

def roofline(rows):
    """The table's shapes under the device's roof, and each as time / floor."""
    device = {row['op']: row for row in rows if row['part'] == 'device'}
    rows = faster_of_fla(rows)
    bandwidth = 2 * 2 ** 30 / number(device['copy'], 'ms') / 1e9  # TB/s
    peak = 2 * int(device['matmul']['n']) ** 3 / number(device['matmul'], 'ms') / 1e9  # TFLOP/s
    shown = [row for row in rows if row['part'] == 'table' and row['dtype'] == 'bf16' or
             row['part'] == 'decode' and row['b'] in ('1', '64')]
    names = names_in(shown)
    p = Picture(980, 470)
    legend(p, 70, 28, names)

    done = {id(row): operations(row) / number(row, 'ms') / 1e9 for row in shown}
    low = min(0.25, 4.0 ** math.floor(math.log(min(done.values()), 4)))
    axes = Axes(p, 70, 90, 330, 320, (0.25, 1024), (low, 2048))
    axes.titles('Roofline', 'FLOP per byte that must be moved', 'TFLOP/s')
    axes.ticks((0.25, 1, 4, 16, 64, 256), [4.0 ** i for i in range(round(math.log(low, 4)), 6)], '{:g}'.format)
    ridge = peak / bandwidth
    axes.curve([(0.25, 0.25 * bandwidth), (ridge, peak), (1024, peak)], INK, dots=False)
    p.text(axes.x(3), axes.y(4 * bandwidth) - 6, f'copy, {bandwidth:.2f} TB/s', size=12, anchor='end')
    p.text(axes.x(1000), axes.y(peak) - 7, f'bf16 matmul, {peak:.0f} TFLOP/s', size=12, anchor='end')
    for name in reversed(names):
        for row in shown:
            if row['implementation'] == name:
                p.dot(axes.x(operations(row) / moved(row)), axes.y(done[id(row)]), STYLES[name][1])
    p.text(axes.x(0.6), axes.y(low) - 8, 'decode', size=12, anchor='start')
    p.text(axes.x(80), axes.y(low) - 8, 'prefill', size=12)

    bars(p, shown, names, 560, 90, 400, 320)
    return p


def bars(p, rows, names, left, top, width, height):
    """Time / floor, logarithmic from 1."""
    p.text(left - 110, top - 26, 'Time / floor', size=15, anchor='start', weight='bold')
    p.text(left - 110, top - 9, 'b, h, n; 1: as fast as a copy of the same bytes', size=12, anchor='start')
    most = max(number(row, 'time_per_floor') for row in rows) * 1.1
    shapes = list(dict.fromkeys((row['op'], row['b'], row['h'], row['n'], row['d']) for row in rows))
    across = lambda value: left + width * max(0.0, math.log(value) / math.log(most))
    for value in (1, 2, 4, 8, 16, 32, 64):
        if value < most:
            p.line(across(value), top, across(value), top + height, fill='#e4e7eb')
            p.text(across(value), top + height + 17, str(value), size=12)
    step = height / len(shapes)
    for i, shape in enumerate(shapes):
        op, b, h, n, d = shape
        words = f'{b}, {h}, {thousands(int(n))}' if op == 'prefill' else f'decode, {b} row{"s" if b != "1" else ""}'
        p.text(left - 8, top + step * (i + 0.5) + 4, words + (', d 64' if d == '64' else ''), size=12, anchor='end')
        some = {row['implementation']: number(row, 'time_per_floor') for row in rows
                if (row['op'], row['b'], row['h'], row['n'], row['d']) == shape}
        for j, name in enumerate(names):
            if name in some:
                thick = step * 0.8 / len(names)
                y = top + step * (i + 0.1) + thick * j
                p.box(left, y, max(1.0, across(some[name]) - left), thick, fill=STYLES[name][1],
                      line=STYLES[name][1], radius=0)
                p.text(across(some[name]) + 4, y + thick - 0.5, f'{some[name]:.2f}', size=8, anchor='start')
    p.line(left, top, left, top + height, fill=INK)


# ---- how time grows ------------------------------------------------------------------------------

def growth(rows, d='128'):
    """Time against tokens for each number of heads, ours beside what is linear; and time / floor."""
    sweep = [row for row in rows if row['part'] == 'sweep' and row['d'] == d]
    heads = sorted({int(row['b']) * int(row['h']) for row in sweep})
    lengths = sorted({int(row['n']) for row in sweep})
    names = names_in(sweep)
    times = {(row['implementation'], int(row['b']) * int(row['h']), int(row['n'])): row for row in sweep}
    p = Picture(980, 460)
    legend(p, 70, 28, names)

    ours = [number(row, 'ms') for (name, _, _), row in times.items() if name == 'lattn']
    low, high = 10 ** math.floor(math.log10(min(ours))), 10 ** math.ceil(math.log10(max(ours)))
    axes = Axes(p, 70, 90, 250, 310, (lengths[0], lengths[-1]), (low, high))
    axes.titles('lattn, each b h', 'n', 'ms')
    axes.ticks(lengths, [10.0 ** i for i in range(round(math.log10(low)), round(math.log10(high)) + 1)],
               lambda value: f'{value:g}' if value < 100 else thousands(int(value)))
    for bh in heads:
        points = [(n, number(times['lattn', bh, n], 'ms')) for n in lengths if ('lattn', bh, n) in times]
        axes.curve(points, BLUE)
        if points:
            n, last = points[-1]
            p.text(axes.x(n) + 6, axes.y(last) + 4, str(bh), size=11, anchor='start')

    panels = [(400, 'b h = 64', 'n', lengths, lambda n: (64, n)),
              (720, 'n = 2048', 'b h', heads, lambda bh: (bh, 2048))]
    floors = {key: number(row, 'time_per_floor') for key, row in times.items() if key[1] == 64 or key[2] == 2048}
    top = 2 ** math.ceil(math.log2(max(floors.values())))
    for left, title, axis, values, at in panels:
        axes = Axes(p, left, 90, 230, 310, (values[0], values[-1]), (0.9, top))
        axes.ticks(values, [2 ** i for i in range(round(math.log2(top)) + 1)], thousands)
        axes.titles(title, axis, 'time / floor')
        for name in reversed(names):
            axes.curve([(v, floors[name, *at(v)]) for v in values if (name, *at(v)) in floors], STYLES[name][1])
    return p
