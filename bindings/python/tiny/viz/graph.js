// A directed graph in layers, sources above: longest paths give the layers, medians of neighbours the order.
import {drawn, hideTip, showTip} from "./dom.js";

const layerGap = 46, nodeGap = 18;

function layersOf(nodes) {
  const layer = new Array(nodes.length).fill(0);
  nodes.forEach((node, i) => {
    for (const source of node.sources) layer[i] = Math.max(layer[i], layer[source] + 1);
  });
  // What is read by one node alone stands right above it.
  for (let i = nodes.length - 1; i >= 0; --i) {
    if (nodes[i].sources.length || !nodes[i].users.length) continue;
    layer[i] = Math.max(layer[i], Math.min(...nodes[i].users.map((user) => layer[user])) - 1);
  }
  const rows = [];
  nodes.forEach((node, i) => (rows[layer[i]] ??= []).push(i));
  return rows.map((row) => row ?? []);
}

function order(rows, nodes) {
  const place = new Array(nodes.length);
  const number = (row) => row.forEach((node, i) => (place[node] = i));
  rows.forEach(number);
  const middle = (list, otherwise) => {
    if (!list.length) return otherwise;
    const sorted = list.map((one) => place[one]).sort((a, b) => a - b);
    return sorted[sorted.length >> 1];
  };
  for (let sweep = 0; sweep < 8; ++sweep) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      const wish = new Map(row.map((i) => [i, middle(down ? nodes[i].sources : nodes[i].users, place[i])]));
      row.sort((a, b) => wish.get(a) - wish.get(b) || place[a] - place[b]);
      number(row);
    }
  }
}

// x by the mean of neighbours, as far as the nodes of a row leave room.
function spread(rows, nodes) {
  for (const row of rows) {
    let x = 0;
    for (const i of row) {
      nodes[i].x = x;
      x += nodes[i].width + nodeGap;
    }
  }
  const centre = (i) => nodes[i].x + nodes[i].width / 2;
  for (let sweep = 0; sweep < 12; ++sweep) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      const wish = row.map((i) => {
        const near = down ? nodes[i].sources : nodes[i].users;
        const all = near.length ? near : [...nodes[i].sources, ...nodes[i].users];
        return all.length ? all.reduce((sum, one) => sum + centre(one), 0) / all.length - nodes[i].width / 2 : nodes[i].x;
      });
      const low = [];
      row.forEach((i, k) => (low[k] = k ? Math.max(wish[k], low[k - 1] + nodes[row[k - 1]].width + nodeGap) : wish[k]));
      const high = [];
      for (let k = row.length - 1; k >= 0; --k)
        high[k] = k + 1 < row.length ? Math.min(wish[k], high[k + 1] - nodes[row[k]].width - nodeGap) : wish[k];
      row.forEach((i, k) => (nodes[i].x = (low[k] + high[k]) / 2));
    }
  }
}

export function layout(nodes) {
  for (const node of nodes) {
    node.users = [];
    node.width = Math.max(44, 7.4 * Math.max(...node.lines.map((line) => line.length)) + 18);
    node.height = 12 + 16 * node.lines.length;
  }
  nodes.forEach((node, i) => node.sources.forEach((source) => nodes[source].users.push(i)));
  const rows = layersOf(nodes);
  order(rows, nodes);
  spread(rows, nodes);
  let y = 0;
  for (const row of rows) {
    const tall = Math.max(0, ...row.map((i) => nodes[i].height));
    for (const i of row) nodes[i].y = y + (tall - nodes[i].height) / 2;
    y += tall + layerGap;
  }
  const left = Math.min(0, ...nodes.map((node) => node.x));
  for (const node of nodes) node.x -= left;
}

function edgesOf(nodes) {
  const group = drawn("g");
  nodes.forEach((node, i) => {
    for (const source of node.sources) {
      const from = nodes[source];
      const [x0, y0] = [from.x + from.width / 2, from.y + from.height];
      const [x1, y1] = [node.x + node.width / 2, node.y];
      const bend = Math.max(16, (y1 - y0) / 2);
      group.append(drawn("path", {class: "edge", "data-from": source, "data-to": i,
                                  d: `M${x0} ${y0}C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1}`}));
    }
  });
  return group;
}

function nodeOf(node, i) {
  const group = drawn("g", {class: `node ${node.kind}`, "data-node": i, transform: `translate(${node.x} ${node.y})`});
  if (node.go) group.setAttribute("data-go", node.go);
  group.append(drawn("rect", {width: node.width, height: node.height, rx: node.kind === "kernel" ? 6 : 12}));
  node.lines.forEach((line, k) => {
    const text = drawn("text", {x: node.width / 2, y: 19 + 16 * k, "text-anchor": "middle"});
    if (k) text.setAttribute("class", "dim");
    text.textContent = line;
    group.append(text);
  });
  return group;
}

// Wheel: nearer and further; drag: about.  Begins with all of it or, of what would be too small to read, with its end,
// where the outputs are.  Gives back a function that shows all.
function movable(svg, box) {
  let view = {...box};
  const apply = () => svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
  const whole = () => {
    const ratio = svg.clientWidth / Math.max(1, svg.clientHeight);
    const w = Math.max(box.w + 40, 500, (box.h + 40) * ratio);  // small graphs are not blown up
    const h = Math.max(w / ratio, 1);
    view = {w, h, x: box.w / 2 - w / 2, y: Math.min(-20, box.h / 2 - h / 2)};
    apply();
  };
  const begin = () => {
    whole();
    const most = 1.25;  // units of the drawing to a pixel
    if (view.w <= most * svg.clientWidth) return;
    view = {w: most * svg.clientWidth, h: most * svg.clientHeight};
    view.x = box.last - view.w / 2;
    view.y = box.h + 20 - view.h;
    apply();
  };
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const by = Math.exp(event.deltaY * 0.0015);
    const at = {x: view.x + (event.offsetX / svg.clientWidth) * view.w, y: view.y + (event.offsetY / svg.clientHeight) * view.h};
    view = {w: view.w * by, h: view.h * by, x: at.x - (at.x - view.x) * by, y: at.y - (at.y - view.y) * by};
    apply();
  }, {passive: false});
  svg.addEventListener("pointerdown", (event) => {
    if (event.target.closest("[data-go]")) return;
    svg.setPointerCapture(event.pointerId);
    svg.classList.add("moving");
  });
  svg.addEventListener("pointermove", (event) => {
    if (!svg.classList.contains("moving")) return;
    view.x -= (event.movementX / svg.clientWidth) * view.w;
    view.y -= (event.movementY / svg.clientHeight) * view.h;
    apply();
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => svg.classList.remove("moving"));
  return [begin, whole];
}

function lighten(svg, nodes) {
  svg.addEventListener("pointerover", (event) => {
    const at = event.target.closest("[data-node]");
    svg.querySelectorAll("path.lit").forEach((path) => path.classList.remove("lit"));
    if (!at) return hideTip();
    const i = at.dataset.node;
    svg.querySelectorAll(`path[data-from="${i}"], path[data-to="${i}"]`).forEach((path) => path.classList.add("lit"));
    if (nodes[i].tip) showTip(nodes[i].tip, event);
  });
  svg.addEventListener("pointerleave", hideTip);
  svg.addEventListener("click", (event) => {
    const at = event.target.closest("[data-go]");
    if (!at) return;
    hideTip();
    location.hash = at.dataset.go;
  });
}

// `nodes`, sources first: {kind, lines, sources, tip, go}.  Draws them into `stage`.
export function draw(stage, nodes) {
  layout(nodes);
  const width = Math.max(1, ...nodes.map((node) => node.x + node.width));
  const height = Math.max(1, ...nodes.map((node) => node.y + node.height));
  const svg = drawn("svg", {class: "graph"}, edgesOf(nodes), ...nodes.map(nodeOf));
  stage.replaceChildren(svg);
  const lowest = nodes.reduce((low, node) => (node.y > low.y ? node : low), {x: 0, y: -1, width: 0});
  const [begin, whole] = movable(svg, {w: width, h: height, last: lowest.x + lowest.width / 2});
  lighten(svg, nodes);
  begin();
  return whole;
}
