// A schedule: its kernels and buffers as a graph, and the graph of tensors that it was made of.
import {amount, element, seconds} from "./dom.js";
import {draw} from "./graph.js";
import {rewritesOf} from "./kernel.js";

function kernelNodes(program, data) {
  const nodes = [], holder = new Map();  // a buffer's number: the node that its value is from
  const bufferNode = (number) => {
    const buffer = program.buffers[number];
    const title = buffer.kind === "input" || buffer.kind === "output" ? `${buffer.kind} ${buffer.number}` : buffer.kind;
    nodes.push({kind: "buffer", lines: [title, amount(buffer.bytes, "B")], sources: [],
                tip: `buffer ${number}: ${buffer.kind}, ${buffer.bytes} bytes`});
    return nodes.length - 1;
  };
  const outputs = new Map();
  program.kernels.forEach((kernel) => {
    const sources = [];
    for (const use of kernel.buffers) {
      if (use.access === "write") continue;
      if (!holder.has(use.buffer)) holder.set(use.buffer, bufferNode(use.buffer));
      sources.push(holder.get(use.buffer));
    }
    const times = data.times.get(kernel.name);
    const lines = [kernel.name];
    if (times?.computes.length) lines.push(times.computes.join(" + ").slice(0, 40));
    if (times) lines.push(seconds(times.best));
    const uses = kernel.buffers.map((use) =>
        `${use.access}s ${program.buffers[use.buffer].kind} ${use.dtype}, ${amount(program.buffers[use.buffer].bytes, "B")}`);
    nodes.push({kind: "kernel", lines, sources: [...new Set(sources)], go: `#/kernel/${encodeURIComponent(kernel.name)}`,
                tip: `${kernel.name}\n${uses.join("\n")}`});
    for (const use of kernel.buffers)
      if (use.access !== "read") {
        holder.set(use.buffer, nodes.length - 1);
        if (program.buffers[use.buffer].kind === "output") outputs.set(use.buffer, nodes.length - 1);
      }
  });
  for (const [number, from] of outputs) nodes[bufferNode(number)].sources = [from];
  return nodes;
}

const movements = new Set(["Reshape", "Permute", "Expand", "Pad", "Shrink", "Flip", "Unfold", "AsStrided", "Alias"]);

// Constants stand in the lines of their users, and with them what only spreads one.
function tensorNodes(graph) {
  const text = graph.nodes.map((node) => (node.op === "Const" ? node.arg : null));
  graph.nodes.forEach((node, i) => {
    const sources = node.src.filter((s) => text[s] === null || i < s);
    if (text[i] === null && movements.has(node.op) && !node.memory && node.src.length && !sources.length)
      text[i] = text[node.src[0]];
  });
  const outputs = new Set(graph.outputs), number = new Map(), nodes = [];
  graph.nodes.forEach((node, i) => {
    if (text[i] !== null && !outputs.has(i)) return;
    number.set(i, nodes.length);
    const constants = node.src.filter((s) => text[s] !== null).map((s) => text[s]);
    const kind = node.memory ? "memory" : movements.has(node.op) ? "movement"
                 : node.op.startsWith("Reduce") || node.op === "Scan" ? "reduce" : "op";
    nodes.push({
      kind: kind + (outputs.has(i) ? " output" : ""),
      lines: [[node.op, ...(kind === "reduce" ? [node.arg] : []), ...constants].join(" ").slice(0, 34), `${node.dtype} ${node.shape}`],
      sources: [...new Set(node.src.filter((s) => number.has(s)).map((s) => number.get(s)))],
      tip: [node.op, node.arg, `${node.dtype} ${node.shape}`, node.name, node.memory ? "in memory" : ""]
               .filter((line) => line).join("\n"),
    });
  });
  return nodes;
}

function passChoice(graph, at, go) {
  const choice = element("select", {id: "pass", "aria-label": "pass", onchange: (event) => go(event.target.value)});
  choice.append(element("option", {value: "-1"}, "as it was built"));
  graph.passes.forEach((pass, i) => {
    if (pass.changed) choice.append(element("option", {value: i}, `after ${pass.name}`));
  });
  choice.value = String(at);
  return choice;
}

// The rules that fired on the graph of tensors and on its way to kernels.
function rules(main, graph) {
  for (const pass of graph?.passes ?? [])
    if (pass.rewrites.length)
      main.append(element("h3", {}, `${pass.name} (${pass.rewrites.length + pass.rewrites_left_out})`), rewritesOf(pass));
  if (!graph?.passes.some((pass) => pass.rewrites.length)) main.append(element("p", {class: "note"}, "no rule fired"));
}

export function show(main, data, number, view = "kernels", pass = -1) {
  const program = data.programs[number];
  if (!program) return main.replaceChildren(element("p", {class: "note"}, "nothing was computed"));
  const graph = data.graphs[program.graph];
  const base = `#/schedule/${number}`;
  const stage = element("div", {class: "stage"});
  const tools = element("div", {class: "tools"});
  const tabs = element("div", {class: "tabs"},
                       ...Object.entries({kernels: "kernels and buffers", graph: "graph of tensors", rules: "rules"}).map(
                           ([key, text]) => element("a", {href: `${base}/${key}`, "data-tab": key,
                                                          class: key === view ? "on" : null}, text)));
  const arena = amount(program.arena_bytes, "B");
  main.replaceChildren(
      element("h2", {class: "title"}, `schedule ${number + 1}`),
      element("p", {class: "facts"}, element("span", {}, element("b", {}, String(program.kernels.length)), " kernels"),
              element("span", {}, element("b", {}, String(graph?.nodes.length ?? 0)), " nodes"),
              element("span", {}, "memory between kernels ", element("b", {}, arena))),
      tabs);
  if (view === "rules") return rules(main, graph);
  main.append(tools, stage);
  let nodes;
  if (view === "graph" && graph) {
    const shown = pass >= 0 ? graph.passes[pass] : graph;
    tools.append(passChoice(graph, pass, (value) => (location.hash = `${base}/graph/${value}`)));
    nodes = tensorNodes(shown);
  } else {
    nodes = kernelNodes(program, data);
  }
  const whole = draw(stage, nodes);
  tools.prepend(element("button", {onclick: () => whole()}, "show all"));
  tools.append(element("span", {class: "note"}, "wheel: zoom; drag: move" + (view === "graph" ? "" : "; click a kernel to look into it")));
}
