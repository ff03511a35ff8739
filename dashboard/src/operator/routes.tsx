/** The operator's screens: routes under `rootRoute` of root.tsx, loaded when they are opened. */
export const operatorRoutes = [] as const;
