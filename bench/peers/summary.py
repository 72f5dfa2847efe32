"""What a comparison says: ratios taken within rounds, as text and as a table in markdown."""

import statistics


def spread(values):
    """Median and range."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def summarize(samples, field):
    """Per contestant: speed, memory, and how many times its speed Trireme had, round by round. The first of the field
    is Trireme. `best` is the fastest peer, `best_of` the fastest of each framework and version, by medians."""

    def column(name, key):
        return [sample[key] for sample in samples if sample["contestant"] == name]

    ours = column("trireme", "images_per_second")
    rows = []
    for contestant in field:
        speeds = column(contestant.name, "images_per_second")
        rows.append({
            "contestant": contestant.name,
            "family": contestant.family,
            "as_installed": contestant.as_installed,
            "images_per_second": spread(speeds),
            "peak_rss_bytes": statistics.median(column(contestant.name, "peak_rss_bytes")),
            "trireme_ratio": spread([a / b for a, b in zip(ours, speeds)]),
        })  # fmt: skip
    peers = rows[1:]
    families = list(dict.fromkeys(row["family"] for row in peers))
    best_of = {family: fastest(row for row in peers if row["family"] == family)["contestant"] for family in families}
    return {"rows": rows, "best": fastest(peers)["contestant"], "best_of": best_of}


def fastest(rows):
    """None if there are no rows."""
    return max(rows, key=lambda row: row["images_per_second"]["median"], default=None)


def ratio_text(ratio):
    return f"{ratio['median']:.2f}x ({ratio['min']:.2f} to {ratio['max']:.2f})"


def left_out_text(left_out):
    return [f"left out: {name}: {reason}" for name, reason in left_out.items()]


def to_text(title, summary, left_out):
    table = [("contestant", "images/s", "min", "max", "peak RSS GB", "Trireme / it, per round")]
    for row in summary["rows"]:
        speed = row["images_per_second"]
        ratio = "" if row["contestant"] == "trireme" else ratio_text(row["trireme_ratio"])
        table.append((row["contestant"], f"{speed['median']:.2f}", f"{speed['min']:.2f}", f"{speed['max']:.2f}",
                      f"{row['peak_rss_bytes'] / 1e9:.2f}", ratio))  # fmt: skip
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    lines = [title]
    for line in table:
        numbers = [cell.rjust(width) for cell, width in zip(line[1:5], widths[1:5])]
        lines.append("  ".join([line[0].ljust(widths[0]), *numbers, line[5]]).rstrip())
    for row in summary["rows"]:
        if row["contestant"] in summary["best_of"].values():
            lines.append(f"Trireme / best {row['family']} ({row['contestant']}): {ratio_text(row['trireme_ratio'])}")
        if row["as_installed"]:
            lines.append(f"Trireme / {row['contestant']}: {ratio_text(row['trireme_ratio'])}")
    return "\n".join(lines + left_out_text(left_out))


# --- Markdown ---------------------------------------------------------------------------------------------------------


def to_markdown(comparisons):
    """One table, one row per comparison: `title`, `settings`, `summary` and `left_out` of each."""
    families = list(dict.fromkeys(family for c in comparisons for family in c["summary"]["best_of"]))
    header = ["work", "Trireme", "as installed", *[f"best {family}" for family in families], "Trireme / best peer",
              "Trireme / as installed", "peak RSS, GB", "leanest peer, GB"]  # fmt: skip
    lines = [header, ["---"] * len(header)] + [markdown_row(c["title"], c["summary"], families) for c in comparisons]
    notes = [f"- {c['title']}: {text}" for c in comparisons for text in [c["settings"], *left_out_text(c["left_out"])]]
    table = ["| " + " | ".join(line) + " |" for line in lines]
    what = "Images/s: the median of the rounds; ratios: median and range of those taken within a round."
    return "\n".join([*table, "", what, "", *notes]) + "\n"


def markdown_row(title, summary, families):
    rows = {row["contestant"]: row for row in summary["rows"]}
    peers = summary["rows"][1:]
    installed = fastest(row for row in peers if row["as_installed"])
    leanest = min(peers, key=lambda row: row["peak_rss_bytes"])
    best = [rows.get(summary["best_of"].get(family)) for family in families]
    return [
        title,
        speed_cell(rows["trireme"]),
        named(speed_cell(installed), installed and installed["family"]),
        *[named(speed_cell(row), row and row["contestant"].removeprefix(row["family"]).strip()) for row in best],
        ratio_text(rows[summary["best"]]["trireme_ratio"]),
        ratio_text(installed["trireme_ratio"]) if installed else "–",
        gigabytes(rows["trireme"]),
        named(gigabytes(leanest), leanest["contestant"]),
    ]


def speed_cell(row):
    return f"{row['images_per_second']['median']:.2f}" if row else "–"


def gigabytes(row):
    return f"{row['peak_rss_bytes'] / 1e9:.2f}"


def named(text, name):
    return f"{text} ({name})" if name else text
