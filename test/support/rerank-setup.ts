import { startMockCohere, startMockJina } from "./mock-rerank.ts";
import { ofFile } from "./of-file.ts";
import { startWithProvider } from "./service-setup.ts";

/** One service for all tests of a file, with the stand-ins of both rerank APIs. */
export const rerankService = () =>
  ofFile(
    async (onEnd) => {
      const [cohere, jina] = [await startMockCohere(), await startMockJina()];
      const running = await startWithProvider(
        {
          COHERE_API_KEY: "co-operator",
          COHERE_BASE_URL: cohere.url,
          JINA_API_KEY: "jina-operator",
          JINA_BASE_URL: jina.url,
        },
        onEnd,
      );
      for (const server of [cohere, jina, running.provider]) onEnd(() => server.close());
      return { ...running, cohere, jina };
    },
    ({ cohere, jina, provider }) => {
      for (const server of [cohere, jina, provider]) server.reset();
    },
  );
