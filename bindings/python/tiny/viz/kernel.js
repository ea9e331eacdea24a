// A kernel: pass by pass with the rules that fired, its loop nest, its code, what it was chosen from.
import {amount, coloured, difference, element, seconds} from "./dom.js";

const tabNames = {passes: "passes", nest: "loop nest", c: "C", asm: "machine code", tree: "expression", choice: "choice"};

function facts(kernel, times) {
  const list = element("p", {class: "facts"});
  const add = (name, value) => value && list.append(element("span", {}, `${name} `, element("b", {}, value)));
  if (times?.computes.length) add("computes", times.computes.join(" + "));
  add("operations", amount(kernel.operations, ""));
  add("bytes", amount(kernel.bytes, "B"));
  if (times) {
    add("launches", String(times.count));
    add("best", seconds(times.best));
    add("mean", seconds(times.total / times.count));
    add("", `${(kernel.operations / times.best / 1e9).toFixed(2)} GFLOPS`);
    add("", `${(kernel.bytes / times.best / 1e9).toFixed(2)} GB/s`);
  }
  list.append(element("span", {}, "options ", element("code", {}, kernel.options || "none")));
  return list;
}

export function rewritesOf(pass) {
  const list = element("ol", {class: "rewrites"});
  for (const step of pass.rewrites)
    list.append(element("li", {},
                        element("div", {class: "rule"}, element("code", {}, step.rule), element("small", {}, step.table)),
                        element("div", {class: "step"}, element("span", {class: "minus"}, step.before),
                                element("span", {class: "plus"}, step.after))));
  if (pass.rewrites_left_out) list.append(element("p", {class: "note"}, `and ${pass.rewrites_left_out} more`));
  return list;
}

function textBefore(kernel, number) {
  for (let i = number - 1; i >= 0; --i)
    if (kernel.passes[i].text !== undefined) return kernel.passes[i].text;
  return kernel.scheduled;
}

function passText(kernel, number) {
  if (number < 0)
    return [element("p", {class: "note"}, "what the scheduler made"), element("pre", {}, coloured(kernel.scheduled))];
  const pass = kernel.passes[number];
  const made = [];
  if (!pass.changed) {
    made.push(element("p", {class: "note"}, `${pass.name} changed nothing; it took ${seconds(pass.seconds)}`));
  } else {
    made.push(element("p", {class: "note"}, `${pass.name} took ${seconds(pass.seconds)}; what went and what came:`));
    const body = element("pre", {});
    // A linear program has little in common with nodes: it stands by itself.
    const before = textBefore(kernel, number);
    const starts = pass.text.startsWith("linear") && !before.startsWith("linear");
    for (const [sign, line] of starts ? pass.text.split("\n").map((one) => [" ", one]) : difference(before, pass.text))
      body.append(sign === " " ? line + "\n" : element("span", {class: sign === "+" ? "plus" : "minus"}, line || " "));
    made.push(body);
  }
  if (pass.rewrites.length) made.push(element("h3", {}, `rules that fired (${pass.rewrites.length})`), rewritesOf(pass));
  return made;
}

function passes(kernel, base, number) {
  const list = element("div", {class: "passes"});
  const entry = (i, name, changed, right) =>
      list.append(element("a", {href: `${base}/passes/${i}`, "data-pass": name,
                                class: `${i === number ? "on" : ""} ${changed ? "" : "same"}`},
                          name, element("small", {}, right)));
  entry(-1, "scheduled", true, "");
  kernel.passes.forEach((pass, i) => entry(i, pass.name, pass.changed,
                                           [pass.rewrites.length ? `${pass.rewrites.length} rules` : "", seconds(pass.seconds)]
                                               .filter((one) => one).join(", ")));
  return element("div", {class: "columns"}, list, element("div", {}, ...passText(kernel, number)));
}

const kindTexts = {thread: "split among threads", vec: "lanes of a vector", upcast: "repeated in registers",
                   unroll: "written out", loop: "loop", dot: "steps of one instruction"};

function nest(kernel) {
  const list = element("div", {class: "nest"});
  kernel.ranges.forEach((range, depth) => {
    list.append(element("div", {class: `range ${range.kind}`, style: `margin-left:${depth * 18}px`},
                        element("code", {}, range.range), element("b", {}, range.size),
                        element("em", {}, kindTexts[range.kind] + (range.reduced ? ", folded" : ""))));
  });
  return [list, element("pre", {id: "nest"}, coloured(kernel.nest))];
}

function choice(kernel) {
  if (!kernel.proposed.length)
    return [element("p", {class: "note"}, "one list of options alone was proposed, or they were given")];
  const most = Math.max(...kernel.proposed.map((one) => one.seconds));
  const table = element("table", {}, element("tr", {}, ...["strategy", "estimate", "", "bound by", "options"].map(
      (name) => element("th", {}, name))));
  for (const one of kernel.proposed)
    table.append(element("tr", {class: one.taken ? "on" : null}, element("td", {}, one.strategy + (one.taken ? " (taken)" : "")),
                         element("td", {class: "n"}, seconds(one.seconds)),
                         element("td", {}, element("div", {class: "bar", style: `width:${(one.seconds / most) * 120}px`})),
                         element("td", {}, one.bound), element("td", {}, element("code", {}, one.options || "none"))));
  return [table];
}

export function show(main, data, name, tab, number) {
  const kernel = data.kernelOf.get(name);
  if (!kernel) return main.replaceChildren(element("p", {class: "note"}, `${name} was not compiled by this process, or left out`));
  const base = `#/kernel/${encodeURIComponent(name)}`;
  tab = tab in tabNames ? tab : "passes";
  const tabs = element("div", {class: "tabs"});
  for (const [key, text] of Object.entries(tabNames))
    tabs.append(element("a", {href: `${base}/${key}`, "data-tab": key, class: key === tab ? "on" : null}, text));
  const firstChange = kernel.passes.findIndex((pass) => pass.changed);
  const bodies = {
    passes: () => [passes(kernel, base, number ?? firstChange)],
    nest: () => nest(kernel),
    c: () => [element("pre", {id: "code"}, coloured(kernel.c ?? "not rendered"))],
    asm: () => [element("pre", {id: "asm"}, kernel.asm ?? "not rendered")],
    tree: () => [element("pre", {id: "tree"}, coloured(kernel.tree))],
    choice: () => choice(kernel),
  };
  main.replaceChildren(element("h2", {class: "title"}, name), facts(kernel, data.times.get(name)), tabs, ...bodies[tab]());
}

// All of them, the slowest in all first.
export function table(main, data) {
  const rows = data.kernels.map((kernel) => ({kernel, times: data.times.get(kernel.name)}));
  rows.sort((a, b) => (b.times?.total ?? 0) - (a.times?.total ?? 0));
  const all = rows.reduce((sum, row) => sum + (row.times?.total ?? 0), 0) || 1;
  const titles = ["kernel", "computes", "launches", "in all", "share", "", "best", "GFLOPS", "GB/s"];
  const made = element("table", {}, element("tr", {}, ...titles.map((name, i) => element("th", {class: i > 1 && i !== 5 ? "n" : null}, name))));
  for (const {kernel, times} of rows) {
    const share = (times?.total ?? 0) / all;
    const cells = [times?.count ?? 0, seconds(times?.total), `${(share * 100).toFixed(1)}%`];
    const rates = times ? [seconds(times.best), (kernel.operations / times.best / 1e9).toFixed(2),
                           (kernel.bytes / times.best / 1e9).toFixed(2)] : ["", "", ""];
    made.append(element("tr", {},
                        element("td", {}, element("a", {href: `#/kernel/${encodeURIComponent(kernel.name)}`}, element("code", {}, kernel.name))),
                        element("td", {}, times?.computes.slice(0, 3).join(" + ") ?? ""),
                        ...cells.map((cell) => element("td", {class: "n"}, String(cell))),
                        element("td", {}, element("div", {class: "bar", style: `width:${share * 160}px`})),
                        ...rates.map((cell) => element("td", {class: "n"}, cell))));
  }
  main.replaceChildren(element("h2", {class: "title"}, "kernels"), made);
}
