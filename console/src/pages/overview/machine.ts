/** The machine as the server computes it: presentation/overview_page.py. */
export interface ResourceUse {
  resource: string;
  allocatable: number;
  requested: number;
  waiting: number;
  used: number | null;
}

export interface OverviewView {
  now: string;
  nodes: { name: string; isReady: boolean }[];
  pods: { placed: number; all: number };
  hasUsage: boolean;
  resources: ResourceUse[];
}
