# The page of `trireme report` in a real browser: chromium, driven by selenium. Skipped where either is missing.
add_test(NAME Browser.ReportPage COMMAND ${CMAKE_CURRENT_LIST_DIR}/report_page_test.py $<TARGET_FILE:trireme_cli>)
set_tests_properties(Browser.ReportPage PROPERTIES LABELS unit TIMEOUT 110 SKIP_RETURN_CODE 77
  ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
