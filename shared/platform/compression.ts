import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";

const toZstd = promisify(zstdCompress);
const fromZstd = promisify(zstdDecompress);
const options = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/**
 * On Node 24, with chat responses and embeddings, zstd at level 1 takes a quarter to a half of the processor time of
 * gzip 1 and of brotli 1, for the same or a smaller size. Both directions run in libuv's thread pool.
 */
export const compress = (text: string): Promise<Buffer> => toZstd(text, options);
export const decompress = async (bytes: Uint8Array): Promise<string> => (await fromZstd(bytes)).toString("utf8");
