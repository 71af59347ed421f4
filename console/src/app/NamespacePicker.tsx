import { Select } from 'antd';
import { useMemo, useState } from 'react';
import { useText } from './i18n.tsx';
import { usePreferences } from './preferences.ts';
import { ALL_NAMESPACES, NAMESPACE_NAME, useNamespace, useSession } from './session.tsx';


/** Chooses the namespace of all lists. A name may be typed, since not everybody may list namespaces. */
export function NamespacePicker() {
  const { common } = useText();
  const { me } = useSession();
  const [namespace, choose] = useNamespace();
  const [{ namespaces: typed }, set] = usePreferences();
  const [search, setSearch] = useState('');
  const names = useMemo(
    () => [...new Set([...(me?.namespaces ?? []), ...typed, ...(namespace === '' ? [] : [namespace])])].sort(),
    [me, typed, namespace],
  );
  const isNew = NAMESPACE_NAME.test(search) && !names.includes(search);
  const options = [
    ...(me?.namespaces === null ? [] : [{ value: ALL_NAMESPACES, label: common.bar.allNamespaces }]),
    ...names.map((name) => ({ value: name, label: name })),
    ...(isNew ? [{ value: search, label: common.bar.addNamespace(search) }] : []),
  ];
  const pick = (value: string) => {
    if (value !== ALL_NAMESPACES && !names.includes(value)) set({ namespaces: [...typed, value] });
    setSearch('');
    choose(value === ALL_NAMESPACES ? '' : value);
  };
  return (
    <div className="pl-namespace">
      <span className="pl-namespace-label" id="namespace-label">
        {common.bar.namespace}
      </span>
      <Select
        aria-labelledby="namespace-label"
        showSearch={{ searchValue: search, onSearch: setSearch }}
        value={namespace === '' ? ALL_NAMESPACES : namespace}
        options={options}
        onChange={pick}
        popupMatchSelectWidth={240}
        variant="borderless"
        notFoundContent={common.bar.noNamespace}
      />
    </div>
  );
}
