import type { Request, Response } from "express";
import type { Caller } from "#keys";

/** Returns the body of the answer. What it shows and changes is the caller's own account's. */
export type AccountHandler = (req: Request<{ id: string }>, res: Response, caller: Caller) => Promise<object | string>;
