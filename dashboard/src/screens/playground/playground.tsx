import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type Model, modelsQuery } from "../../api/models.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Select } from "../../components/select.tsx";
import { Chat } from "./chat.tsx";
import { Embeddings } from "./embeddings.tsx";
import { Generation } from "./generation.tsx";

const route = getRouteApi("/playground");
const endpoints = ["/v1/chat/completions", "/v1/images/generations", "/v1/media/generations", "/v1/embeddings"];

export function Playground() {
  return (
    <Page title="Playground" intro="Real calls, paid from the balance like any other.">
      <QueryView query={useQuery(modelsQuery)}>
        {(models) => <Chosen models={models.filter(({ endpoint }) => endpoints.includes(endpoint))} />}
      </QueryView>
    </Page>
  );
}

function Chosen({ models }: { readonly models: readonly Model[] }) {
  const { model: wanted } = route.useSearch();
  const navigate = route.useNavigate();
  const model = models.find(({ id }) => id === wanted) ?? models.find(({ id }) => id === "local/chat") ?? models[0];
  if (!model)
    return (
      <EmptyState title="No model can be called now">
        <p>The service has no worker that serves one. Try again in a minute.</p>
      </EmptyState>
    );
  return (
    <>
      <Select
        label="Model"
        className="max-w-md"
        value={model.id}
        options={models.map(({ id, type }) => ({ value: id, label: `${id} (${type})` }))}
        onChange={(id) => void navigate({ search: { model: id } })}
      />
      <Screen key={model.id} model={model} />
    </>
  );
}

function Screen({ model }: { readonly model: Model }) {
  if (model.endpoint === "/v1/chat/completions") return <Chat model={model} />;
  if (model.endpoint === "/v1/embeddings") return <Embeddings model={model} />;
  return <Generation model={model} />;
}
