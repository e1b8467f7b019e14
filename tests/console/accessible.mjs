// What keeps a page from being used by everybody: a list of findings, empty where there are none. Runs in the page.

export const findings = () => {
  const found = [];
  const say = (rule, element) => found.push(`${rule}: ${element.outerHTML.slice(0, 160)}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const words = (element) => element.textContent.trim();

  if (!document.documentElement.lang) found.push("the page has no language");
  if (!document.title) found.push("the page has no title");
  for (const landmark of ["main", "header", "footer", "h1"]) {
    if (all(landmark).length !== 1 && landmark !== "h1") found.push(`there is not one ${landmark}`);
    if (all(landmark).length === 0) found.push(`there is no ${landmark}`);
  }
  let level = 0;
  for (const heading of all("h1, h2, h3, h4")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) say("a heading skips a level", heading);
    level = own;
  }
  const ids = all("[id]").map((element) => element.id);
  for (const element of all("[id]")) if (ids.filter((id) => id === element.id).length > 1) say("an id comes twice", element);
  for (const input of all("input:not([type=hidden]), select")) if (!input.labels?.length) say("a field has no label", input);
  for (const nav of all("nav")) if (!nav.getAttribute("aria-label")) say("a nav has no name", nav);
  for (const link of all("a[href], button")) if (!words(link)) say("a link or button has no words", link);
  for (const image of all("img")) if (!image.hasAttribute("alt")) say("an image has no alternative", image);
  for (const chart of all("svg")) {
    const hidden = chart.getAttribute("aria-hidden") === "true";
    if (!hidden && !(chart.getAttribute("role") === "img" && chart.getAttribute("aria-label"))) say("a chart has no name", chart);
  }
  for (const reference of all("[aria-labelledby]")) {
    if (!document.getElementById(reference.getAttribute("aria-labelledby"))) say("a name is missing", reference);
  }
  for (const table of all("table")) {
    if (!table.caption) say("a table has no caption", table);
    for (const head of table.querySelectorAll("th")) if (!head.scope) say("a head has no scope", head);
  }

  // Contrast (WCAG 2.2 AA): 4.5 for text, 3 for large text.
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const opaque = (colour) => colour.startsWith("rgb") && (channels(colour)[3] ?? 1) === 1;
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (opaque(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const luminance = (colour) => {
    const [red, green, blue] = channels(colour).map((channel) => {
      const part = channel / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const seen = new Set();
  for (const element of all("body *:not(svg *)")) {
    const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!own || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = contrast(style.color, background(element));
    const kind = `${style.color} on ${background(element)}`;
    if (ratio < (large ? 3 : 4.5) && !seen.has(kind)) {
      seen.add(kind);
      say(`contrast ${ratio.toFixed(2)} (${kind})`, element);
    }
  }
  return found;
};
