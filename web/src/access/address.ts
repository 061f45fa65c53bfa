// Who can reach an address, and what to do if another device cannot.

export type Reach = "alone" | "plain" | "sealed";

/** alone: this machine only · plain: others, and the network can read it · sealed: others, encrypted. */
export function reach(address: string): Reach {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return "alone";
  }
  if (url.hostname === "localhost" || url.hostname === "[::1]" || url.hostname.startsWith("127.")) return "alone";
  return url.protocol === "https:" ? "sealed" : "plain";
}

/** Lines for people, each with a command where there is one. */
export function advice(reached: Reach, address: string): { text: string; code?: string }[] {
  if (reached === "plain") return [{ text: "This address is not encrypted: traffic, including the link, is readable on that network. Use it in a VPN, not on a public network." }];
  if (reached === "sealed") return [];
  const port = new URL(address).port || "80";
  return [
    { text: "This address works on this machine only: a phone cannot open it. To reach it from another device:" },
    { code: `ssh -L ${port}:127.0.0.1:${port} HOST`, text: "on the other device, which then opens this link;" },
    { code: `hold up --web ADDRESS:${port}`, text: "with the address of this machine in your VPN;" },
    { code: `hold up --web ${port} --web-url https://NAME`, text: "behind your reverse proxy. Then make a new link." },
  ];
}
