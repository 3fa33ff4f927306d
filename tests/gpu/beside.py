"""Prints tern's training steps beside PyTorch's: beside.py ROWS..., the output files of steps and torch_steps.py.

There is one row per network and precision, and one column per way, in ms. "-" means not measured. The last column is the
time of tern's recorded step over PyTorch's best time. If a way was measured twice, its slower time counts.
"""
import sys

TERN, PEERS = ("tern-graph", "tern-one-by-one"), ("eager-nchw", "eager-nhwc", "graph", "compiled", "compiled-graph")


def read_times(paths):
    times = {}  # by network, batch and precision, then by way
    for path in paths:
        with open(path) as rows:
            for row in rows:
                words = row.split()
                if len(words) < 5 or words[0] == "#" or not words[4].replace(".", "").isdigit():
                    continue
                of = times.setdefault(tuple(words[:3]), {})
                of[words[3]] = max(float(words[4]), of.get(words[3], 0))
    return times


def print_table(times):
    """Prints the table and returns the number of ratios in it."""
    ratios = 0
    print(f"{'network':<10} {'batch':>5} {'math':<5}" + "".join(f" {way:>15}" for way in TERN + PEERS), " tern ÷ best")
    for (network, batch, precision), of in times.items():
        line = f"{network:<10} {batch:>5} {precision:<5}"
        line += "".join(f" {of[way]:>15.4f}" if way in of else f" {'-':>15}" for way in TERN + PEERS)
        peers = [way for way in PEERS if way in of]
        if peers and "tern-graph" in of:
            best = min(peers, key=of.get)
            line += f"  {of['tern-graph'] / of[best]:.2f} ({best})"
            ratios += 1
        print(line)
    return ratios


if __name__ == "__main__":
    if print_table(read_times(sys.argv[1:])) == 0:
        sys.exit("beside.py: found no network that both have, in " + ", ".join(sys.argv[1:]))
