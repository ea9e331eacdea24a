// Small helpers that make elements and texts.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

export function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function seconds(value) {
  if (value === undefined || value === null) return "";
  if (value === 0) return "0 s";
  if (value >= 1) return `${value.toFixed(2)} s`;
  if (value >= 1e-3) return `${(value * 1e3).toFixed(2)} ms`;
  return `${(value * 1e6).toFixed(value < 1e-5 ? 2 : 1)} us`;
}

export function amount(value, unit) {
  const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [size, letter] of steps)
    if (value >= size) return `${(value / size).toFixed(2)} ${letter}${unit}`;
  return `${Math.round(value)} ${unit}`;
}

const tip = document.getElementById("tip");
export function showTip(text, event) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - box.width - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - box.height - 8)}px`;
}
export function hideTip() {
  tip.hidden = true;
}

// C, assembly and UOps with words and numbers told apart.
const words = /\b(void|const|struct|for|if|return|else|loop|threads|fill|load|store|acc|fma|order|fact|linear)\b|(?<![\w.])-?\d[\w.]*/g;
export function coloured(text) {
  const made = document.createDocumentFragment();
  let at = 0;
  for (const found of text.matchAll(words)) {
    made.append(text.slice(at, found.index));
    made.append(element("span", {class: found[1] ? "word" : "number"}, found[0]));
    at = found.index + found[0].length;
  }
  made.append(text.slice(at));
  return made;
}

// Lines of nodes ("%7 = int64 Mul %3 %5"), with what each is in the place of its number: a node that others were put
// before is the same.
function linesOf(text, known) {
  const numbers = new Map();
  return text.split("\n").map((line) => {
    const [, name, value] = line.match(/^\s*(%\d+) = (.*)$/) ?? [null, null, line];
    const key = value.replace(/%\d+/g, (one) => `#${numbers.get(one) ?? one}`);
    if (!known.has(key)) known.set(key, known.size);
    if (name) numbers.set(name, known.get(key));
    return {line, is: known.get(key)};
  });
}

// The lines of two texts: [" ", line] in both, ["-", line] gone, ["+", line] new.
export function difference(before, after) {
  const known = new Map();
  const a = linesOf(before, known), b = linesOf(after, known);
  let first = 0;
  while (first < a.length && first < b.length && a[first].is === b[first].is) ++first;
  let last = 0;
  while (last < a.length - first && last < b.length - first && a[a.length - 1 - last].is === b[b.length - 1 - last].is) ++last;
  const left = a.slice(first, a.length - last), right = b.slice(first, b.length - last);
  const middle = left.length * right.length > 4e6 ? [...left.map((l) => ["-", l]), ...right.map((l) => ["+", l])]
                                                  : longestCommon(left, right);
  const same = (lines) => lines.map((l) => [" ", l]);
  return [...same(b.slice(0, first)), ...middle, ...same(b.slice(b.length - last))].map(([sign, l]) => [sign, l.line]);
}

function longestCommon(a, b) {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; --i)
    for (let j = b.length - 1; j >= 0; --j)
      lengths[i * width + j] = a[i].is === b[j].is ? lengths[(i + 1) * width + j + 1] + 1
                                             : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
  const made = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i].is === b[j].is) {
      made.push([" ", b[j++]]);
      ++i;
    } else if (j === b.length || (i < a.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]))
      made.push(["-", a[i++]]);
    else
      made.push(["+", b[j++]]);
  }
  return made;
}
