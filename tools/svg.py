"""A picture of boxes, lines and words, as SVG."""
from html import escape

INK, PALE, LINE = '#1f2933', '#f4f6f8', '#9aa5b1'
BLUE, GREEN, ORANGE, VIOLET, GREY = '#4a7fb5', '#4f9d69', '#d9822b', '#8561c5', '#b8c1cc'


class Picture:
    def __init__(self, width, height):
        self.size = width, height
        self.parts = []

    def box(self, x, y, w, h, fill=PALE, line=INK, radius=3, dash='', opacity=1.0):
        dashed = f' stroke-dasharray="{dash}"' if dash else ''
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{radius}" fill="{fill}" '
                          f'fill-opacity="{opacity}" stroke="{line}"{dashed}/>')

    def text(self, x, y, words, size=13, anchor='middle', fill=INK, weight='normal', family='sans-serif'):
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
                          f'font-weight="{weight}" font-family="{family}" xml:space="preserve">{escape(words)}</text>')

    def code(self, x, y, words, **style):
        self.text(x, y, words, family='monospace', **style)

    def arrow(self, *points, fill=INK):
        path = ' '.join(f'{x:g},{y:g}' for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{fill}" stroke-width="1.4" '
                          f'marker-end="url(#head)"/>')

    def line(self, x0, y0, x1, y1, fill=LINE, dash=''):
        dashed = f' stroke-dasharray="{dash}"' if dash else ''
        self.parts.append(f'<line x1="{x0:g}" y1="{y0:g}" x2="{x1:g}" y2="{y1:g}" stroke="{fill}"{dashed}/>')

    def dot(self, x, y, fill, radius=3.5):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}"/>')

    def curve(self, points, line, dash=''):
        path = ' '.join(f'{x:.1f},{y:.1f}' for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ''
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{line}" stroke-width="1.6"{dashed}/>')

    def polygon(self, points, fill, opacity=1.0):
        path = ' '.join(f'{x:g},{y:g}' for x, y in points)
        self.parts.append(f'<polygon points="{path}" fill="{fill}" fill-opacity="{opacity}" stroke="{INK}"/>')

    def svg(self):
        w, h = self.size
        head = ('<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>')
        ground = f'<rect width="{w}" height="{h}" rx="8" fill="#ffffff"/>'
        return '\n'.join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}">',
                          head, ground, *self.parts, '</svg>', ''])
