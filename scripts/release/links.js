/*
 * Links in Markdown to other files and to headings.
 */
import { posix } from 'node:path';

/**
 * @param {string} path of the file, from the root
 * @param {string} text
 * @param {(path: string) => string | null} read a file's text; null if there is none
 * @returns {string[]} links that lead nowhere
 */
export function linkProblems(path, text, read) {
  return linksIn(text).flatMap((link) => {
    if (/^[a-z]+:/.test(link)) return [];
    const [file, anchor] = link.split('#');
    const target = file ? posix.join(posix.dirname(path), file) : path;
    const found = file ? read(target) : text;
    if (found === null) return [`${path} links to ${link}: there is no ${target}`];
    if (anchor && target.endsWith('.md') && !anchorsIn(found).includes(anchor))
      return [`${path} links to ${link}: ${target} has no such heading`];
    return [];
  });
}

/** @param {string} text @returns {string[]} without what is in code */
function linksIn(text) {
  const prose = text.replace(/^```.*?^```/gms, '').replace(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)(?: "[^"]*")?\)/g)].map(([, link]) => link);
}

/** @param {string} text @returns {string[]} the anchors of its headings, as on GitHub */
function anchorsIn(text) {
  const headings = [...text.replace(/^```.*?^```/gms, '').matchAll(/^#+ +(.+)$/gm)];
  return headings.map(([, heading]) =>
    heading
      .toLowerCase()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
