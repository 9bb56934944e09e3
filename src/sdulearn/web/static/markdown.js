// Instructions in Markdown as elements: headings, paragraphs, lists, code, emphasis and links. All else stays text.
import { make } from "./view.js";

const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|__([^_]+)__|\*([^*]+)\*|\b_([^_]+)_\b|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)/g;

function inline(text) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    const [whole, code, bold, strong, italic, slanted, label, href] = found;
    nodes.push(text.slice(from, found.index));
    from = found.index + whole.length;
    if (code) nodes.push(make("code", {}, code));
    else if (bold ?? strong) nodes.push(make("strong", {}, ...inline(bold ?? strong)));
    else if (italic ?? slanted) nodes.push(make("em", {}, ...inline(italic ?? slanted)));
    else nodes.push(make("a", { href, target: "_blank", rel: "noopener noreferrer" }, label));
  }
  return [...nodes, text.slice(from)];
}

function block(lines) {
  const heading = /^(#{1,3})\s+(.*)$/.exec(lines[0]);
  if (heading)
    return [
      make(`h${heading[1].length + 1}`, {}, ...inline(heading[2])),
      ...(lines.length > 1 ? block(lines.slice(1)) : []),
    ];
  const mark = [/^\s*[-*+]\s+/, /^\s*\d+[.)]\s+/].find((one) => one.test(lines[0]));
  if (mark) {
    const items = [];
    for (const line of lines)
      mark.test(line) ? items.push(line.replace(mark, "")) : items.push(`${items.pop()} ${line.trim()}`);
    return [make(mark.source.includes("d") ? "ol" : "ul", {}, ...items.map((item) => make("li", {}, ...inline(item))))];
  }
  const list = lines.findIndex((line, k) => k > 0 && /^\s*([-*+]|\d+[.)])\s+/.test(line));
  if (list > 0) return [...block(lines.slice(0, list)), ...block(lines.slice(list))];
  return [make("p", {}, ...inline(lines.join(" ")))];
}

export function markdown(text) {
  const blocks = text
    .replace(/\r\n?/g, "\n")
    .split(/\n\s*\n/)
    .map((one) => one.split("\n").filter((line) => line.trim()));
  return blocks.filter((lines) => lines.length).flatMap(block);
}
