/** The widgets of blessed-contrib that the dashboard imports by file; the package has types only for its index. */
declare module 'blessed-contrib/lib/widget/canvas.js' {
  const canvas: typeof import('blessed-contrib').canvas;
  export default canvas;
}

declare module 'blessed-contrib/lib/widget/table.js' {
  const table: typeof import('blessed-contrib').table;
  export default table;
}
