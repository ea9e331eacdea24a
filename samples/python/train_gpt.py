"""Trains a small GPT on this repository's documents, character by character, and lets it write.

Usage: train_gpt.py [STEPS [FILE..]]

Without files it reads README.md and docs/.  Prints the mean loss (in nats a character) of every 50
of the STEPS (500), and then what the network writes.  Exit status: 0 done, 1 something failed, 2 wrong usage.
"""

import pathlib
import random
import re
import sys
import time

import tiny

LAYERS, WIDTH, HEADS, LENGTH = 4, 128, 4, 64  # LENGTH characters are seen at once
BATCH, RATE, SEED = 32, 4e-3, 1


def read(paths):
    root = pathlib.Path(__file__).resolve().parents[2]
    paths = paths or [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    text = "".join(pathlib.Path(path).read_text(encoding="utf-8") for path in paths)
    return re.sub(" +", " ", text)  # tables are mostly spaces


def gpt(module, tokens, characters):
    """For each token [batch, LENGTH] numbers for the character that comes next: the greatest is the likeliest."""
    x = module.embedding("token", tokens, characters, WIDTH)
    x = x + module.embedding("place", module.context.arange(tiny.int64, LENGTH), LENGTH, WIDTH)
    for i in range(LAYERS):
        block = module.child(f"block{i}")
        h = block.layer_norm("norm1", x)
        x = x + block.attention("attention", h, h, h, HEADS, causal=True)
        h = block.layer_norm("norm2", x)
        x = x + block.linear("down", block.linear("up", h, 4 * WIDTH).gelu(), WIDTH)
    return module.linear("head", module.layer_norm("norm", x), characters)


class Trainer:
    """A step of AdamW as one program: it takes places in the text, and writes the parameters."""

    def __init__(self, context, module, text, characters):
        places = context.input(tiny.int64, [BATCH])
        # The characters from each place on, and those that come next.
        pieces = text.gather(places.unsqueeze([1]) + context.arange(tiny.int64, LENGTH + 1))
        seen, wanted = pieces[:, :-1], pieces[:, 1:]
        gpt(module, seen, characters)  # makes the parameters
        parameters = [module.parameter_at(i) for i in range(module.parameter_count)]
        self.size = sum(p.numel for p in parameters)
        self.optimizer = tiny.Optimizer.create(context, tiny.OptimizerKind.ADAMW)
        self.optimizer.add(parameters)
        self.optimizer.set(0, "weight_decay", 0.1)
        self.optimizer.set(0, "beta2", 0.99)
        # Built again on the parameters that the optimiser has.
        logits = gpt(module, seen, characters)
        loss = logits.reshape([BATCH * LENGTH, characters]).cross_entropy(wanted.reshape([BATCH * LENGTH]))
        gradients = tiny.gradient([loss], parameters)
        self.optimizer.step(tiny.clip_by_norm(gradients, tiny.gradient_norm(gradients), 1.0))
        self.run = tiny.Run.create(tiny.Program.compile([places], [loss, *parameters]))

    def step(self, places, rate):
        self.optimizer.set(0, "lr", rate)
        self.run.set_input(0, tiny.tensor(places, tiny.int64))
        self.run.execute()
        return self.run.output_tensor(0).item()


class Writer:
    """One more character, drawn by chance, as a program: its random numbers go on with every run."""

    def __init__(self, context, module, characters, temperature=0.8):
        tokens, last = context.input(tiny.int64, [1, LENGTH]), context.input(tiny.int64, [1])
        logits = gpt(module, tokens, characters)[0].gather(last)
        drawn = module.generator().next().random_multinomial((logits / temperature).softmax(), 1)
        self.run = tiny.Run.create(tiny.Program.compile([tokens, last], [drawn]))

    def write(self, tokens, count):
        tokens = list(tokens)
        for _ in range(count):
            seen = tokens[-LENGTH:]
            # What stands behind the last one is not looked at: attention is causal.
            self.run.set_input(0, tiny.tensor([seen + [0] * (LENGTH - len(seen))], tiny.int64))
            self.run.set_input(1, tiny.tensor([len(seen) - 1], tiny.int64))
            self.run.execute()
            tokens.append(self.run.output_tensor(0).item())
        return tokens


def main(steps, paths):
    text = read(paths)
    letters = sorted(set(text))
    number = {letter: i for i, letter in enumerate(letters)}
    context = tiny.default_context()
    module = tiny.Module.create(context, SEED)
    trainer = Trainer(context, module, tiny.tensor([number[letter] for letter in text], tiny.int64), len(letters))
    print(f"{len(text)} characters, {len(letters)} different ones; {trainer.size} parameters")

    places = random.Random(SEED)
    losses, start = [], time.monotonic()  # since the last line
    for step in range(1, steps + 1):
        # The rate warms up and cools down.
        rate = min(RATE * step / 20, tiny.rate_cosine(RATE, step, steps, RATE / 10))
        losses.append(trainer.step([places.randrange(len(text) - LENGTH) for _ in range(BATCH)], rate))
        if step == 1 or step % 50 == 0 or step == steps:
            pace = (time.monotonic() - start) / len(losses) * 1e3
            print(f"step {step}: loss {sum(losses) / len(losses):.4f}, {pace:.0f} ms a step", flush=True)
            losses, start = [], time.monotonic()

    module.set_training(False)
    written = Writer(context, module, len(letters)).write([number["\n"]], 300)
    print("".join(letters[i] for i in written))


if __name__ == "__main__":
    try:
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    except ValueError:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    try:
        main(count, sys.argv[2:])
    except (tiny.Error, OSError) as error:
        sys.exit(f"train_gpt: {error}")
