// A terminal emulator in the page that only shows: nothing that a program prints can type, copy, name or open anything.
import "./styles";
import { Terminal, type ILinkHandler, type ITheme } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import "./term.css";

const SCROLLBACK_LINES = 5000; // some 10 MB at 80 columns; older output is in the replay

export const FONT = 'ui-monospace, "SF Mono", Menlo, "Cascadia Mono", "DejaVu Sans Mono", Consolas, monospace';

const DARK: ITheme = {
  background: "#0b0e0f", foreground: "#dfe6e5", cursor: "#5cc8b6", cursorAccent: "#0b0e0f", selectionBackground: "#2c4f4c",
  black: "#1b2122", red: "#f28b82", green: "#8fd19e", yellow: "#e3c878", blue: "#8ab4f8", magenta: "#d7aefb", cyan: "#78d9ec", white: "#cfd8d7",
  brightBlack: "#8a9694", brightRed: "#ffaba3", brightGreen: "#b0e6bb", brightYellow: "#f4dd9a", brightBlue: "#b0ccff", brightMagenta: "#e8cdff", brightCyan: "#a5ebf8", brightWhite: "#ffffff",
}; // prettier-ignore

const LIGHT: ITheme = {
  background: "#fdfdfc", foreground: "#1a2322", cursor: "#0b6b60", cursorAccent: "#fdfdfc", selectionBackground: "#bfe3dd",
  black: "#1a2322", red: "#b3261e", green: "#1b6e34", yellow: "#7a5900", blue: "#1a56b0", magenta: "#8430a8", cyan: "#00687a", white: "#66706e",
  brightBlack: "#56615f", brightRed: "#c5352c", brightGreen: "#257a3f", brightYellow: "#856400", brightBlue: "#2a66c4", brightMagenta: "#9440ba", brightCyan: "#0c7589", brightWhite: "#3a4543",
}; // prettier-ignore

const dark = matchMedia("(prefers-color-scheme: dark)");

/** The two addresses a link may have; everything else is text. */
export function safeLink(text: string): URL | null {
  try {
    const url = new URL(text);
    return url.protocol === "http:" || url.protocol === "https:" ? url : null;
  } catch {
    return null;
  }
}

export interface View {
  term: Terminal;
  dispose(): void;
}

export function open(element: HTMLElement, options: { fontSize: number; typing: boolean; ask: (url: URL) => void }): View {
  const handler: ILinkHandler = {
    activate: (_event, text) => {
      const url = safeLink(text);
      if (url) options.ask(url);
    },
    allowNonHttpProtocols: false,
  };
  const term = new Terminal({
    fontFamily: FONT,
    fontSize: options.fontSize,
    theme: dark.matches ? DARK : LIGHT,
    scrollback: SCROLLBACK_LINES,
    allowProposedApi: true, // for the width of characters
    minimumContrastRatio: 4.5,
    cursorBlink: false, // calm, and no repaint while nothing happens
    disableStdin: !options.typing,
    macOptionIsMeta: true,
    linkHandler: handler,
    windowOptions: {}, // none: no program asks for or changes the window
  });
  silence(term);
  term.open(element);
  const rethemed = (): void => {
    term.options.theme = dark.matches ? DARK : LIGHT;
  };
  dark.addEventListener("change", rethemed);
  void extras(term, options.ask);
  return {
    term,
    dispose: () => {
      dark.removeEventListener("change", rethemed);
      term.dispose();
    },
  };
}

/** Questions of programs are the host's to answer. Here they, clipboards, colours and titles end without effect. */
function silence(term: Terminal): void {
  const { parser } = term;
  const swallow = (): boolean => true;
  for (const final of ["c", "n", "t"]) {
    parser.registerCsiHandler({ final }, swallow);
    parser.registerCsiHandler({ prefix: "?", final }, swallow);
  }
  for (const id of [
    { prefix: ">", final: "c" }, { prefix: "=", final: "c" }, { prefix: ">", final: "q" },
    { intermediates: "$", final: "p" }, { prefix: "?", intermediates: "$", final: "p" }, { prefix: "?", final: "u" },
  ]) parser.registerCsiHandler(id, swallow); // prettier-ignore
  parser.registerDcsHandler({ intermediates: "$", final: "q" }, swallow);
  parser.registerDcsHandler({ intermediates: "+", final: "q" }, swallow);
  for (const code of [0, 1, 2, 9, 50, 52, 99, 777, 1337]) parser.registerOscHandler(code, swallow);
  for (const code of [4, 5, 10, 11, 12]) parser.registerOscHandler(code, (data) => data.includes("?"));
}

/** What is nice to have, fetched after the first paint. */
async function extras(term: Terminal, ask: (url: URL) => void): Promise<void> {
  const [webgl, unicode, links] = await Promise.all([
    drawsFast() ? import("@xterm/addon-webgl") : null, import("@xterm/addon-unicode11"), import("@xterm/addon-web-links"),
  ]); // prettier-ignore
  if (!term.element?.isConnected) return;
  term.loadAddon(new unicode.Unicode11Addon());
  term.unicode.activeVersion = "11";
  term.loadAddon(new links.WebLinksAddon((_event, text) => {
    const url = safeLink(text);
    if (url) ask(url);
  })); // prettier-ignore
  if (!webgl) return;
  try {
    const gpu = new webgl.WebglAddon();
    gpu.onContextLoss(() => gpu.dispose()); // back to the plain renderer
    term.loadAddon(gpu);
  } catch {
    // no WebGL here: the plain renderer does it
  }
}

/** Whether WebGL has a GPU behind it. Drawn by the processor, it is slower than text, and the page waits for it. */
function drawsFast(): boolean {
  const context = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  if (!context) return false;
  const about = context.getExtension("WEBGL_debug_renderer_info"); // browsers do not count all of them as slow
  const name = about ? String(context.getParameter(about.UNMASKED_RENDERER_WEBGL)) : "";
  context.getExtension("WEBGL_lose_context")?.loseContext();
  return !/swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

/** The size of one cell as it is drawn now. */
export function cells(term: Terminal): { width: number; height: number } | null {
  const core = (term as unknown as { _core?: { _renderService?: { dimensions?: { css: { cell: { width: number; height: number } } } } } })._core;
  const cell = core?._renderService?.dimensions?.css.cell;
  return cell && cell.width > 0 && cell.height > 0 ? cell : null;
}

const SMALLEST_PX = 5; // below this nothing is legible

/** Letters as large as the whole terminal in its box allows, up to the usual size and down to the least. */
export class Scale {
  private of = "";
  private most: number;

  constructor(private usual: number, private least = SMALLEST_PX) {
    this.most = usual;
  }

  fit(term: Terminal, box: HTMLElement): void {
    const cell = cells(term);
    const { clientWidth: width, clientHeight: height } = box;
    if (!cell || !width || !height) return;
    const of = `${term.cols}x${term.rows} in ${width}x${height}`;
    if (of !== this.of) this.most = this.usual;
    this.of = of;
    const now = term.options.fontSize ?? this.usual;
    const room = Math.min(width / (cell.width * term.cols), height / (cell.height * term.rows));
    if (room < 1) this.most = now - 0.5; // cells are whole pixels: what did not fit once is not tried again
    const font = Math.max(this.least, Math.min(this.most, Math.floor(now * room * 2) / 2));
    if (font === now) return;
    term.options.fontSize = font;
    requestAnimationFrame(() => this.fit(term, box));
  }
}
