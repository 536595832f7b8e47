"""check_picture.py FILE.svg texts|boxes|lines [LOG...]: what a picture shows.

The file has to be well-formed XML. `texts` prints its title and its texts, one a
line; `boxes` the rows of a timeline, with the number of boxes of each color of its
legend; `lines` the lines of a chart, compared with the logs.
"""

import collections
import json
import re
import sys
import xml.etree.ElementTree

path, what, *logs = sys.argv[1:]
SVG = "{http://www.w3.org/2000/svg}"
root = xml.etree.ElementTree.parse(path).getroot()
title = root.find(SVG + "title").text


def get_texts():
    return [(float(text.get("x")), float(text.get("y")), text.text)
            for text in root.iter(SVG + "text")]


def get_color(shape):
    """Shades of a color are the color."""
    color = [int(c) for c in re.findall(r"\d+", shape.get("fill"))]
    return tuple(round(10 * c / max(color)) for c in color)


def print_boxes():
    boxes = [box for box in root.iter(SVG + "rect")
             if box.get("stroke") == "white"]
    names, rows = {}, collections.defaultdict(collections.Counter)
    texts = get_texts()
    for box in boxes:
        left, top = float(box.get("x")), float(box.get("y"))
        beside = [t for x, y, t in texts if x == left + 17 and y == top + 10]
        if beside:
            names[get_color(box)] = beside[0]
    for box in boxes:
        top, height = float(box.get("y")), float(box.get("height"))
        for x, y, text in texts:
            if x == 10 and top < y < top + height:
                rows[text][names[get_color(box)]] += 1
    for row, counts in rows.items():
        print(f"{row}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))


def get_points(path):
    return [tuple(map(float, pair.split(",")))
            for pair in re.findall(r"[-\d.]+,[-\d.]+", path.get("d"))]


def compare(points, records, texts):
    """The pixels of a line, with the axes as the ticks say."""
    def fit(ticks):
        (a, pixel_a), (b, pixel_b) = ticks[0], ticks[-1]
        return lambda value: pixel_a + (value - a) * (pixel_b - pixel_a) / (b - a)
    numbers = [(x, y, float(t)) for x, y, t in texts
               if re.fullmatch(r"[\d.]+", t)]
    lowest = max(y for _, y, _ in numbers)
    to_x = fit([(t, x) for x, y, t in numbers if y == lowest])
    to_y = fit([(t, y - 4) for x, y, t in numbers if y != lowest])
    wrong = [record for record, (x, y) in zip(records, points)
             if abs(to_x(record["step"]) - x) > 0.2
             or abs(to_y(record["loss"]) - y) > 0.2]
    return "as in the log" if not wrong else f"unlike {wrong[0]}"


def print_lines():
    paths = list(root.iter(SVG + "path"))
    texts = get_texts()
    names = [t for x, y, t in texts if y == 40 and not t.endswith(", evaluation")]
    long_lines = [p for p in paths if len(get_points(p)) > 20]
    shapes = {12: "circle", 4: "square", 3: "triangle"}
    for name, line, log in zip(names, long_lines, logs):
        color = line.get("stroke")
        with open(log, encoding="utf-8") as file:
            records = [json.loads(text) for text in file]
        updates = [record for record in records if "loss" in record]
        points = get_points(line)
        if len(points) != len(updates):
            sys.exit(f"{name}: {len(points)} points of {len(updates)} updates")
        markers = [p for p in paths if p.get("stroke") == color
                   and p.get("d").endswith("Z")]
        filled = {shapes[len(get_points(p))] for p in markers
                  if p.get("fill") == color}
        # One of the empty ones is in the legend.
        empty = sum(p.get("fill") == "white" for p in markers)
        print(f"{name}: color {color}, {'/'.join(filled)}, {len(points)} points "
              f"{compare(points, updates, texts)}, {max(empty - 1, 0)} evaluations")


print(title)
if what == "texts":
    for _, _, text in get_texts():
        print(text)
elif what == "boxes":
    print_boxes()
else:
    print_lines()
